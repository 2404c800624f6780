//! The projector from outside: events go into a real log, rows come out of a real database.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

mod blocks;
mod circles;
mod contacts;
mod equality;
mod expiry;
mod faults;
mod forgotten;
mod forgotten_runs;
mod lagging;
mod large_runs;
mod lists;
mod mixed;
mod orders;
mod poison;
mod rebuild;
mod records;
mod repairs;
mod runs;
mod several;
mod support;
mod verify;
mod whole;
