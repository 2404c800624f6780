//! Setup by the neighbours, as any organization may do.

use serde_json::{Value, json};

use crate::wire::{ask, outcome};
use crate::{Ground, Neighbour, leaks, loops, targets};

/// Expressions whose cost depends on their input.
const EXPRESSIONS: [(&str, &str); 3] = [
    ("select", r#"trigger.l|select("in", trigger.l)|length > 0"#),
    ("reject", r#"trigger.l|reject("in", trigger.l)|length > 0"#),
    (
        "replace",
        r#"trigger.l|map("replace", "1", trigger.s)|length > 0"#,
    ),
];

/// Saves the workflows and webhooks that the attacks need. Returns descriptions of the refused
/// ones.
pub async fn prepare(ground: &Ground) -> Vec<String> {
    let mut refused = Vec::new();
    for neighbour in &ground.neighbours {
        for (id, steps) in workflows(ground, neighbour) {
            let body = json!({"name": id, "status": "ACTIVE", "timeoutSeconds": u64::from(ground.size.call_seconds) * 3,
                "steps": steps});
            let path = format!("/api/v1/workflows/{id}");
            refused.extend(send(ground, neighbour, "PUT", &path, &body).await);
        }
        for nth in 0..ground.size.hooks {
            let url = format!("http://{}/hook/{nth}", ground.sink);
            let body = json!({"url": url, "events": ["custom.told", "custom.judged"]});
            let path = "/api/v1/webhooks";
            refused.extend(send(ground, neighbour, "POST", path, &body).await);
        }
        let body = targets::webhook(ground);
        refused.extend(send(ground, neighbour, "POST", "/api/v1/webhooks", &body).await);
    }
    refused
}

async fn send(
    ground: &Ground,
    neighbour: &Neighbour,
    method: &str,
    path: &str,
    body: &Value,
) -> Option<String> {
    let asked = ground.json(method, path, &neighbour.key, &body.to_string());
    let answered = ask(0, &asked).await;
    let taken = matches!(&answered, Ok(head) if head.starts_with('2'));
    (!taken).then(|| format!("{method} {path}: {}", outcome(&answered)))
}

/// The step that begins a workflow, before its next one.
pub(crate) fn start(next: &str) -> Value {
    json!({"id": "start", "type": "TRIGGER", "next": [next]})
}

fn workflows(ground: &Ground, neighbour: &Neighbour) -> Vec<(&'static str, Value)> {
    let notify = |id: &str, event: &str| json!({"id": id, "type": "NOTIFY", "event": event});
    let call = json!({"id": "call", "type": "HTTP", "url": format!("http://{}/step", ground.sink),
        "method": "POST", "timeoutSeconds": ground.size.call_seconds, "retry": {"maxAttempts": 2}});
    let fan = json!({"id": "start", "type": "TRIGGER", "on": {"event": "custom.fan"},
        "next": ["a", "b", "c"]});
    let mut workflows = vec![
        ("hang", json!([start("call"), call])),
        ("tell", json!([start("tell"), notify("tell", "told")])),
        ("spark", json!([start("a"), notify("a", "fan")])),
        (
            "fan",
            json!([
                fan,
                notify("a", "fan"),
                notify("b", "fan"),
                notify("c", "fan")
            ]),
        ),
    ];
    workflows.push(loops::workflow(ground, neighbour));
    workflows.push(targets::workflow());
    workflows.extend(leaks::workflows());
    for (name, expression) in EXPRESSIONS {
        let judge = json!({"id": "judge", "type": "CONDITION", "if": expression,
            "then": ["tell"], "else": []});
        let steps = json!([start("judge"), judge, notify("tell", "judged")]);
        workflows.push((name, steps));
    }
    workflows
}
