//! Reads and exports over HTTP, each test on its own read models.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests live by the machine's clock"
)]

mod any_page;
mod business;
mod checks;
mod dashboard;
mod exports;
mod feeds;
mod filters;
mod lists;
mod outage;
mod persons;
mod positions;
mod searches;
mod shapes;
mod support;
