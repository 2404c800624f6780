//! Runs: their state, and each step with its attempts.

use schemas::AggregateType;
use serde_json::{Value, json};

use super::Fold;
use crate::check::Fact;

pub(super) fn take(fold: &mut Fold, fact: &Fact) {
    if fact.aggregate != AggregateType::Run {
        return;
    }
    let (data, at) = (&fact.data, json!(fact.time));
    if fact.kind == "workflow.triggered" {
        return fold.put(
            "runs",
            json!({"org_id": fact.org, "run_id": data["runId"], "workflow_id": data["workflowId"],
                "workflow_version": data["workflowVersion"], "state": "QUEUED",
                "trigger_payload": data["triggerPayload"], "created_at": at, "started_at": null,
                "ended_at": null, "error": null, "steps": {}}),
        );
    }
    let key = format!("{} {}", fact.org, fact.stream);
    if fact.kind == "run.forgotten" {
        fold.rows("runs").remove(&key);
        return;
    }
    let Some(run) = fold.rows("runs").get_mut(&key) else {
        return;
    };
    // Events after a run's end change nothing, unless it is retried.
    if !run["ended_at"].is_null() {
        if fact.kind == "run.retried" && run["state"] != "SUCCEEDED" {
            begin_again(run);
        }
        return;
    }
    match fact.kind.as_str() {
        "run.started" => {
            run["state"] = json!("RUNNING");
            if run["started_at"].is_null() {
                run["started_at"] = at;
            }
        }
        "run.step_started" => {
            run["state"] = json!("RUNNING");
            let step = step(run, data);
            step["state"] = json!("RUNNING");
            attempt(step, data, &at);
        }
        "run.step_succeeded" => {
            let step = step(run, data);
            step["state"] = json!("SUCCEEDED");
            step["output"] = data["output"].clone();
            attempt(step, data, &at)["endedAt"] = at.clone();
        }
        "run.step_failed" => {
            let retried = !data["retryAt"].is_null();
            let step = step(run, data);
            step["state"] = json!(if retried { "WAITING" } else { "FAILED" });
            let attempt = attempt(step, data, &at);
            attempt["endedAt"] = at;
            attempt["error"] = data["error"].clone();
        }
        "run.waiting" => {
            run["state"] = json!("WAITING");
            step(run, data)["state"] = json!("WAITING");
        }
        "run.succeeded" => end(run, "SUCCEEDED", &at),
        "run.failed" => {
            end(run, "FAILED", &at);
            run["error"] = data["error"].clone();
        }
        "run.cancelled" => end(run, "CANCELLED", &at),
        _ => {}
    }
}

fn step<'a>(run: &'a mut Value, data: &Value) -> &'a mut Value {
    let id = data["stepId"].as_str().unwrap_or_default();
    let step = &mut run["steps"][id];
    if step.is_null() {
        *step = json!({"state": "QUEUED", "attempts": [], "output": null});
    }
    step
}

/// A step that ends in a moment need not report its start.
fn attempt<'a>(step: &'a mut Value, data: &Value, at: &Value) -> &'a mut Value {
    let number = &data["attempt"];
    let attempts = step["attempts"].as_array();
    let known = attempts.and_then(|all| all.iter().position(|one| one["number"] == *number));
    let place = known.unwrap_or_else(|| {
        let attempts = step["attempts"].as_array_mut();
        let new = json!({"number": number, "startedAt": at, "endedAt": null, "error": null});
        attempts.map_or(0, |all| {
            all.push(new);
            all.len() - 1
        })
    });
    &mut step["attempts"][place]
}

fn end(run: &mut Value, state: &str, at: &Value) {
    run["state"] = json!(state);
    run["ended_at"] = at.clone();
    for (_, step) in run["steps"].as_object_mut().into_iter().flatten() {
        match step["state"].as_str() {
            Some("RUNNING" | "WAITING") => step["state"] = json!("CANCELLED"),
            Some("QUEUED") => step["state"] = json!("SKIPPED"),
            _ => {}
        }
        for attempt in step["attempts"].as_array_mut().into_iter().flatten() {
            if attempt["endedAt"].is_null() {
                attempt["endedAt"] = at.clone();
            }
        }
    }
}

fn begin_again(run: &mut Value) {
    run["state"] = json!("QUEUED");
    run["ended_at"] = Value::Null;
    run["error"] = Value::Null;
    for (_, step) in run["steps"].as_object_mut().into_iter().flatten() {
        if step["state"] != "SUCCEEDED" {
            step["state"] = json!("QUEUED");
        }
    }
}
