//! The tests, a module per capability.
use serde_json::{Value, json};

mod account_own;
mod accounts;
mod analytics;
mod any_page;
mod backup;
mod bounds_in_memory;
mod business;
mod characters;
mod checks;
mod circles;
mod codes;
mod connections;
mod counts;
mod crash;
mod dashboard;
mod deliveries;
mod documents;
mod events;
mod export_kinds;
mod exports;
mod exports_again;
mod exports_bounds;
mod exports_since;
mod exports_whole;
mod feeds_bounds;
mod feeds_sight;
mod filters;
mod forgetting;
mod http_step;
mod idempotency;
mod import;
mod import_again;
mod isolation;
mod keys;
mod keys_ended;
mod keys_given;
mod limits;
mod lists;
mod live;
mod live_circles;
mod live_locations;
mod live_pace;
mod locations;
mod master_key;
mod ndjson;
mod neighbours;
mod not_triggered;
mod on_pages;
mod operations;
mod operators;
mod outages;
mod pages;
mod pages_closed;
mod pages_docs;
mod pages_events;
mod pages_keys;
mod pages_map;
mod pages_records;
mod pages_runs;
mod pages_system;
mod people;
mod preconditions;
mod projections;
mod records;
mod records_all;
mod retry;
mod runs;
mod searches;
mod secrecy;
mod settings;
mod sos;
mod stats;
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
mod webhook_commands;
mod webhook_replays;
mod webhooks;
mod websocket;
mod workflows;

/// Records or other objects, one a line.
fn ndjson(lines: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

/// A workflow of these steps that can be triggered.
fn active(steps: &Value) -> Value {
    json!({"name": "Test", "status": "ACTIVE", "steps": steps})
}

/// A workflow whose runs end as soon as they have begun.
fn only_begins() -> Value {
    active(&json!([{"id": "start", "type": "TRIGGER"}]))
}
