//! All behaviour visible from outside, against four processes behind a proxy.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that finds something else than it expects has failed"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

use harness::{Shape, System};

mod outside;

/// The shape of the system under test.
const SHAPE: Shape = Shape::Four;

/// The system that tests share.
async fn system() -> &'static System {
    System::shared(SHAPE).await
}
