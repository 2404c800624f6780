//! What operators and programs look at.

use serde_json::{Value, json};

use super::Part;
use super::operation::{Operation, get};
use super::shape::{schema, string};

pub(super) fn part() -> Part {
    let check = json!({
        "type": "object", "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}},
    });
    let readiness = json!({
        "type": "object", "required": ["ready", "checks"],
        "properties": {
            "error": {"type": "string", "description": "What is not ready, where something is not."},
            "ready": {"type": "boolean"},
            "checks": {"type": "object", "additionalProperties": check},
        },
    });
    Part {
        tag: "Upkeep",
        description: "Whether Waypost runs, and these descriptions.",
        operations: operations(),
        schemas: vec![("Readiness", readiness)],
    }
}

fn document(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    get(path, id, summary).answers(200, "The document.", json!({"type": "object"}))
}

fn operations() -> Vec<Operation> {
    let text = |kind: &str| -> Value { json!({kind: {"schema": string()}}) };
    vec![
        get("/healthz", "isAlive", "Whether the process lives").answers(
            200,
            "It does.",
            json!({"type": "object"}),
        ),
        get("/readyz", "isReady", "Whether the process can do its work")
            .answers(200, "It can.", schema("Readiness"))
            .answers(503, "It cannot; `error` says why.", schema("Readiness")),
        get(
            "/metrics",
            "readMetrics",
            "Metrics in the Prometheus text format",
        )
        .answers_with(200, "Metrics.", text("text/plain")),
        document("/openapi.json", "readOpenApi", "This document"),
        document(
            "/asyncapi.json",
            "readAsyncApi",
            "The description of sockets, webhooks and feeds",
        ),
    ]
}
