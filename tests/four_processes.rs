//! Everything that can be seen from outside, against four processes behind a proxy.
use harness::{Shape, System};

mod outside;

/// The system under test.
async fn system() -> &'static System {
    System::shared(Shape::Four).await
}
