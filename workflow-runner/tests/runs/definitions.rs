//! Short builders of workflows.

use serde_json::{Map, Value};

/// A workflow whose steps follow each other.
pub(crate) fn workflow(steps: &[Value]) -> Value {
    let mut steps: Vec<Map<String, Value>> = steps
        .iter()
        .map(|step| step.as_object().unwrap().clone())
        .collect();
    let ids: Vec<Value> = steps.iter().map(|step| step["id"].clone()).collect();
    for (step, next) in steps.iter_mut().zip(ids.into_iter().skip(1)) {
        if step["type"] == "CONDITION" {
            continue;
        }
        step.entry("next")
            .or_insert_with(|| Value::Array(vec![next]));
    }
    serde_json::json!({ "name": "Test", "status": "ACTIVE", "timeoutSeconds": 60, "steps": steps })
}

pub(crate) fn trigger() -> Value {
    serde_json::json!({ "id": "start", "type": "TRIGGER" })
}

pub(crate) fn notify(id: &str, data: &Value) -> Value {
    serde_json::json!({ "id": id, "type": "NOTIFY", "event": "told", "data": data })
}

/// An HTTP step; `extra` sets further fields.
pub(crate) fn http(id: &str, url: &str, extra: Value) -> Value {
    let mut step = serde_json::json!({
        "id": id, "type": "HTTP", "method": "POST", "url": url, "timeoutSeconds": 5,
        "retry": { "maxAttempts": 3, "initialSeconds": 0.02, "maxSeconds": 0.05 },
    });
    let Value::Object(extra) = extra else {
        panic!("fields are an object");
    };
    step.as_object_mut().unwrap().extend(extra);
    step
}
