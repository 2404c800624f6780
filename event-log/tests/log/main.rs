//! The event log against a real server: the one that `NATS_URL` names, or one of its own for
//! tests that stop it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panic"
)]

mod append;
mod backup;
mod backup_damage;
mod batches;
mod buckets;
mod conflicts;
mod crashes;
mod deadlines;
mod erase;
mod folds;
mod follow;
mod follow_faults;
mod followers;
mod holes;
mod lagging;
mod limits;
mod load;
mod positions;
mod read;
mod readers;
mod rotation;
mod start;
mod support;
mod throttle;
mod vault;
mod went_back;
