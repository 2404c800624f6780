//! Data that many tests write.

use serde_json::{Value, json};

/// Records or other objects, one per line.
pub(super) fn ndjson(lines: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

/// A workflow with these steps that can be triggered.
pub(super) fn active(steps: &Value) -> Value {
    json!({"name": "Test", "status": "ACTIVE", "steps": steps})
}

/// A workflow whose runs end as soon as they start.
pub(super) fn only_begins() -> Value {
    active(&json!([{"id": "start", "type": "TRIGGER"}]))
}
