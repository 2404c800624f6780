//! The workflows of a run: together they have steps of all types, and are triggered by everything
//! that can trigger workflows.

use serde_json::{Value, json};

/// Workflows that the load triggers.
pub(crate) const WORKFLOWS: &[&str] = &["plain", "call", "both", FAILS, WAITS];
/// The workflow whose call is never accepted, so that its runs fail.
pub(crate) const FAILS: &str = "fails";
/// The path it calls, below the address of HTTP steps, and its number of attempts.
pub(crate) const NEVER_TAKEN: &str = "/never-taken";
pub(crate) const TRIES: u32 = 3;
/// The workflow that waits: for a time, or for the event that its payload's `answer` names.
pub(crate) const WAITS: &str = "waits";
/// The workflow that events trigger.
pub(crate) const HEARS: &str = "hears";
/// The workflow that calls for help trigger. Its runs hold what a person said, and are forgotten
/// with the person.
pub(crate) const HELPS: &str = "helps";
/// The workflow that the clock triggers.
pub(crate) const TICKS: &str = "ticks";

/// The event that is listened to and waited for.
pub(crate) const HEARD: &str = "lead.created";
/// The event that calls for help are.
pub(crate) const CALLED: &str = "sos.triggered";
/// The lowest score of a lead that triggers a workflow.
pub(crate) const LOWEST_SCORE: u64 = 50;
/// How long one step waits for its event, and another delays, in milliseconds.
pub(crate) const ANSWER_WITHIN: i64 = 3_000;
pub(crate) const DELAY: i64 = 400;

/// Every workflow that an organization has from the start.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    WORKFLOWS.iter().copied().chain([HEARS, HELPS, TICKS])
}

/// A workflow of one of these kinds. `step` is the address that HTTP steps call.
pub(crate) fn definition(kind: &str, name: &str, step: &str) -> Value {
    let steps = match kind {
        "plain" => json!([start(&["tell"]), tell("any")]),
        "call" => json!([start(&["one"]), call("one", step, 50), tell("any")]),
        "both" => json!([
            start(&["one", "two"]),
            call("one", step, 50),
            call("two", step, 50),
            tell("all")
        ]),
        FAILS => json!([
            start(&["one"]),
            call("one", &format!("{step}{NEVER_TAKEN}"), TRIES),
            tell("any")
        ]),
        WAITS => waits(),
        HELPS => json!([
            {"id": "start", "type": "TRIGGER", "next": ["pause"], "on": {"event": CALLED}},
            pause("tell"),
            notify("any", &json!({"run": "{{ run.id }}"}))
        ]),
        HEARS => json!([
            {"id": "start", "type": "TRIGGER", "next": ["tell"],
                "on": {"event": HEARD, "filter": format!("data.score >= {LOWEST_SCORE}")}},
            notify("any", &json!({"run": "{{ run.id }}", "lead": "{{ trigger.id }}"}))
        ]),
        _ => json!([
            {"id": "start", "type": "TRIGGER", "next": ["tell"], "on": {"schedule": "* * * * *"}},
            notify("any", &json!({"run": "{{ run.id }}", "at": "{{ trigger.scheduledFor }}"}))
        ]),
    };
    json!({"name": name, "status": "ACTIVE", "timeoutSeconds": 3_600, "steps": steps})
}

/// Half of the runs wait for a time, half for an event; those that receive it then write a record.
fn waits() -> Value {
    json!([
        start(&["which"]),
        {"id": "which", "type": "CONDITION", "if": "trigger.mark is even",
            "then": ["pause"], "else": ["reply"]},
        pause("save"),
        {"id": "reply", "type": "WAIT_FOR_EVENT", "event": HEARD,
            "match": "data.name == trigger.answer", "timeoutSeconds": seconds(ANSWER_WITHIN),
            "next": ["save"], "onTimeout": ["tell"]},
        {"id": "save", "type": "RECORD", "kind": "contacts", "next": ["tell"],
            "recordId": "{{ trigger.record }}", "data": {"lastName": "n{{ trigger.mark }}"}},
        tell("any")
    ])
}

fn pause(next: &str) -> Value {
    json!({"id": "pause", "type": "DELAY", "seconds": seconds(DELAY), "next": [next]})
}

#[expect(clippy::cast_precision_loss, reason = "few enough")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}

fn start(next: &[&str]) -> Value {
    json!({"id": "start", "type": "TRIGGER", "next": next})
}

fn call(id: &str, url: &str, tries: u32) -> Value {
    json!({"id": id, "type": "HTTP", "url": url, "method": "POST", "next": ["tell"],
        "body": {"run": "{{ run.id }}"}, "timeoutSeconds": 2,
        "retry": {"maxAttempts": tries, "initialSeconds": 0.1, "maxSeconds": 1}})
}

fn tell(join: &str) -> Value {
    let data = json!({"run": "{{ run.id }}", "mark": "{{ trigger.mark }}"});
    notify(join, &data)
}

fn notify(join: &str, data: &Value) -> Value {
    json!({"id": "tell", "type": "NOTIFY", "event": "told", "join": join, "data": data})
}
