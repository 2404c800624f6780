//! Behaviour visible from outside that depends on the shape, with all services in one process.
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

/// What depends on how the services are split into processes: what passes between them, what is
/// shared or counted, what starts, stops and fails, that every path is answered, and what
/// `docs/security.md` promises. What only one service does, regardless of the others, is tested
/// against four processes.
mod outside {
    mod account_own;
    mod accounts;
    mod backup;
    mod bounds_in_memory;
    mod characters;
    mod checks;
    mod circles;
    mod code_requests;
    mod codes;
    mod common;
    mod connections;
    mod counts;
    mod crash;
    mod dashboard;
    mod deliveries;
    mod documents;
    mod events;
    mod exports;
    mod exports_bounds;
    mod feeds_bounds;
    mod feeds_sight;
    mod forgetting;
    mod http_step;
    mod idempotency;
    mod import;
    mod isolation;
    mod keys;
    mod keys_ended;
    mod keys_given;
    mod limits;
    mod live;
    mod live_circles;
    mod live_locations;
    mod live_pace;
    mod locations;
    mod master_key;
    mod neighbours;
    mod not_triggered;
    mod on_pages;
    mod operations;
    mod operators;
    mod outages;
    mod pages;
    mod pages_docs;
    mod pages_system;
    mod people;
    mod projections;
    mod records;
    mod restored_places;
    mod retry;
    mod runs;
    mod secrecy;
    mod settings;
    mod sos;
    mod steps;
    mod targets;
    mod templates;
    mod tenants;
    mod throttles;
    mod token_repeats;
    mod tokens;
    mod traces;
    mod trigger;
    mod triggers;
    mod uploads;
    mod uploads_packed;
    mod webhook_replays;
    mod webhooks;
    mod websocket;
    mod workflows;

    use self::common::{active, ndjson, only_begins};
}

/// The shape of the system under test.
const SHAPE: Shape = Shape::One;

/// The system that tests share.
async fn system() -> &'static System {
    System::shared(SHAPE).await
}
