//! Sockets and webhooks over a real log, with real clients and receivers, and without Postgres.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

mod folds;
mod people;
mod places;
mod sockets;
mod support;
mod webhooks;
