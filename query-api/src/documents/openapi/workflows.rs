//! Workflows and runs.

use access::Scope;
use serde_json::{Value, json};

use super::operation::{Operation, get, post, put};
use super::shape::{
    answer, array, id, integer, like, list, meaning, nullable, schema, string, time, word,
};
use super::{Part, workflow_shapes};
use crate::paging::BY_TIME_AND_NAME;

const STATES: &[&str] = &[
    "QUEUED",
    "RUNNING",
    "WAITING",
    "SUCCEEDED",
    "FAILED",
    "CANCELLED",
];
const STEP_STATES: &[&str] = &[
    "QUEUED",
    "RUNNING",
    "WAITING",
    "SUCCEEDED",
    "FAILED",
    "CANCELLED",
    "SKIPPED",
];

pub(super) fn part() -> Part {
    let mut schemas = workflow_shapes::schemas();
    schemas.extend(shapes());
    Part {
        tag: "Workflows",
        description: "Workflow definitions and their runs.",
        operations: definitions().into_iter().chain(runs()).collect(),
        schemas,
    }
}

fn definitions() -> Vec<Operation> {
    vec![
        post(
            "/api/v1/workflows/{workflowId}/trigger",
            "triggerWorkflow",
            "Start a run",
        )
        .says(
            "The body, if there is one, becomes the run's `triggerPayload`, with `triggeredBy` \
             and `triggeredAt` set by the server. Answered once the run is on disk. A body that \
             is not a JSON object, is larger than 256 KiB or is nested more than 100 levels \
             deep is 400, and so is an `Idempotency-Key` already used with another body.",
        )
        .key(Scope::TriggerWorkflow)
        .path_value("workflowId", "The workflow.", id())
        .parameter(super::shape::refer("parameters", "IdempotencyKey"))
        .body(json!({
            "required": false,
            "content": {"application/json": {
                "schema": {"type": "object", "additionalProperties": true},
                "example": {"name": "Ada"},
            }},
        }))
        .answers(
            202,
            "The run is on disk.",
            answer(vec![("runId", string())]),
        )
        .answer_header("Waypost-Position")
        .refuses(&[400, 404, 409, 500]),
        put(
            "/api/v1/workflows/{workflowId}",
            "putWorkflow",
            "Save a workflow",
        )
        .says("Every change creates a new version; runs in progress keep theirs.")
        .key(Scope::WriteWorkflows)
        .path_value("workflowId", "The workflow; created if new.", id())
        .takes("WorkflowDefinition")
        .answers(200, "Saved.", schema("SavedWorkflow"))
        .answer_header("ETag")
        .creates()
        .command()
        .refuses(&[409]),
        get("/api/v1/workflows", "listWorkflows", "List workflows")
            .key(Scope::ReadWorkflows)
            .read()
            .sought_and_sorted(
                "Part of a name or of an id, whatever its case.",
                BY_TIME_AND_NAME,
            )
            .paged()
            .answers(
                200,
                "Workflows, newest first unless sorted.",
                list("WorkflowSummary"),
            ),
        get(
            "/api/v1/workflows/{workflowId}",
            "getWorkflow",
            "Read a workflow",
        )
        .key(Scope::ReadWorkflows)
        .path_value("workflowId", "The workflow.", id())
        .read()
        .answers(200, "The newest version.", schema("Workflow"))
        .answer_header("ETag")
        .refuses(&[404]),
    ]
}

fn runs() -> Vec<Operation> {
    vec![
        get(
            "/api/v1/workflows/{workflowId}/runs",
            "listRuns",
            "List a workflow's runs",
        )
        .key(Scope::ReadWorkflows)
        .path_value("workflowId", "The workflow.", id())
        .query_value("state", "Only runs in this state.", word(STATES))
        .read()
        .paged()
        .answers(200, "Runs, newest first.", list("Run"))
        .refuses(&[404]),
        get("/api/v1/runs/{runId}", "getRun", "Read a run")
            .key(Scope::ReadWorkflows)
            .path_value("runId", "The run.", id())
            .read()
            .answers(200, "The run.", schema("Run"))
            .refuses(&[404]),
        post("/api/v1/runs/{runId}/cancel", "cancelRun", "Cancel a run")
            .key(Scope::WriteWorkflows)
            .path_value("runId", "The run.", id())
            .idempotent()
            .answers(
                202,
                "The run is being cancelled.",
                answer(vec![("runId", string())]),
            )
            .command()
            .refuses(&[404, 409, 413]),
        post(
            "/api/v1/runs/{runId}/retry",
            "retryRun",
            "Retry a failed or cancelled run",
        )
        .key(Scope::WriteWorkflows)
        .path_value("runId", "The run.", id())
        .idempotent()
        .answers(202, "The run continues.", answer(vec![("runId", string())]))
        .command()
        .refuses(&[404, 409, 413]),
    ]
}

fn summary_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("workflowId", string()),
        ("name", string()),
        ("status", word(workflow_shapes::STATUSES)),
        ("version", integer(1, i64::from(u32::MAX))),
        ("updatedAt", time()),
    ]
}

fn shapes() -> Vec<(&'static str, Value)> {
    let attempt = answer(vec![
        ("number", integer(1, i64::from(u32::MAX))),
        ("startedAt", time()),
        ("endedAt", nullable(time())),
        ("error", nullable(string())),
    ]);
    let step = answer(vec![
        ("id", string()),
        ("type", word(&workflow_shapes::types())),
        ("state", word(STEP_STATES)),
        ("attempts", array(&attempt)),
        ("input", meaning(json!({}), "The step's input.")),
        (
            "output",
            meaning(json!({}), "For an HTTP step: `{status, headers, body}`."),
        ),
    ]);
    let mut workflow = summary_fields();
    workflow.extend([
        ("timeoutSeconds", integer(1, 31_536_000)),
        ("createdAt", time()),
        ("steps", array(&json!({"type": "object"}))),
    ]);
    vec![
        (
            "SavedWorkflow",
            answer(vec![
                ("workflowId", like(string(), "welcome-a-lead")),
                ("version", integer(1, i64::from(u32::MAX))),
            ]),
        ),
        ("WorkflowSummary", answer(summary_fields())),
        ("Workflow", answer(workflow)),
        ("RunStep", step),
        (
            "Run",
            answer(vec![
                ("runId", string()),
                ("workflowId", string()),
                ("workflowVersion", integer(1, i64::from(u32::MAX))),
                ("state", word(STATES)),
                ("triggerPayload", json!({"type": "object"})),
                ("createdAt", time()),
                ("startedAt", nullable(time())),
                ("endedAt", nullable(time())),
                ("error", nullable(string())),
                ("steps", array(&schema("RunStep"))),
            ]),
        ),
    ]
}
