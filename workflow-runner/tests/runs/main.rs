//! Runs over a real log with real receivers, and without Postgres.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

mod about;
mod again;
mod bounds;
mod branches;
mod definitions;
mod ending;
mod events;
mod faults;
mod once;
mod ownership;
mod receiver;
mod runner;
mod secrets;
mod server;
mod steps;
mod triggers;
mod waiting;
mod world;
