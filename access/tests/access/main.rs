//! Keys and limits on real servers, which `NATS_URL` and `DATABASE_URL` name.
#![expect(clippy::unwrap_used, reason = "a test may fail")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

mod exactness;
mod limits;
mod outage;
mod persons;
mod requests;
mod support;
