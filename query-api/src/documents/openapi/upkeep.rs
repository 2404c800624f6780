//! Operations for monitoring by operators and programs.

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
            "error": {"type": "string", "description": "What is not ready, if anything."},
            "ready": {"type": "boolean"},
            "checks": {"type": "object", "additionalProperties": check},
        },
    });
    Part {
        tag: "Upkeep",
        description: "Health, metrics and these documents.",
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
        get("/healthz", "isAlive", "Check that the process is alive").answers(
            200,
            "It is alive.",
            json!({"type": "object"}),
        ),
        get("/readyz", "isReady", "Check that the process is ready")
            .answers(200, "It is ready.", schema("Readiness"))
            .answers(
                503,
                "It is not ready; `error` says why.",
                schema("Readiness"),
            ),
        get(
            "/metrics",
            "readMetrics",
            "Read metrics (Prometheus text format)",
        )
        .answers_with(200, "Metrics.", text("text/plain")),
        document("/openapi.json", "readOpenApi", "Read this document"),
        document(
            "/asyncapi.json",
            "readAsyncApi",
            "Read the description of sockets, webhooks and feeds",
        ),
    ]
}
