//! Every command by HTTP, against the real log.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod forgetting;
mod keys;
mod operator;
mod records;
mod records_ndjson;
mod support;
mod trigger;
mod webhooks;
mod workflows;
