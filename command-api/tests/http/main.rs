//! Every command by HTTP, against the real log.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod forgetting;
mod keys;
mod operator;
mod pages;
mod people;
mod positions;
mod records;
mod records_ndjson;
mod sos;
mod support;
mod trigger;
mod uploads_again;
mod webhooks;
mod wiretap;
mod workflows;
