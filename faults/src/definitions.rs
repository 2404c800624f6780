//! The workflows of a run: between them they have steps of all types, and are set off by whatever
//! can set workflows off.

use serde_json::{Value, json};

/// Those that the load triggers.
pub(crate) const WORKFLOWS: &[&str] = &["plain", "call", "both", FAILS, WAITS];
/// The one whose call is never taken, so that its runs fail.
pub(crate) const FAILS: &str = "fails";
/// Where it calls, behind the address of HTTP steps, and how often.
pub(crate) const NEVER_TAKEN: &str = "/never-taken";
pub(crate) const TRIES: u32 = 3;
/// The one that waits: for a time, or for the event that its payload's `answer` names.
pub(crate) const WAITS: &str = "waits";
/// The one that events set off.
pub(crate) const HEARS: &str = "hears";
/// The one that the clock sets off.
pub(crate) const TICKS: &str = "ticks";

/// The event that is listened to and waited for.
pub(crate) const HEARD: &str = "lead.created";
/// The lowest score of a lead that sets a workflow off.
pub(crate) const LOWEST_SCORE: u64 = 50;
/// How long a step waits for its event, and another one for its time, in milliseconds.
pub(crate) const ANSWER_WITHIN: i64 = 3_000;
pub(crate) const DELAY: i64 = 400;

/// Every workflow that an organization has from the beginning.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    WORKFLOWS.iter().copied().chain([HEARS, TICKS])
}

/// A workflow of one of these kinds. `step` is where HTTP steps call.
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

/// Half of the runs wait for a time, half for an event; those for which something came then write
/// a record.
fn waits() -> Value {
    json!([
        start(&["which"]),
        {"id": "which", "type": "CONDITION", "if": "trigger.mark is even",
            "then": ["pause"], "else": ["reply"]},
        {"id": "pause", "type": "DELAY", "seconds": seconds(DELAY), "next": ["save"]},
        {"id": "reply", "type": "WAIT_FOR_EVENT", "event": HEARD,
            "match": "data.name == trigger.answer", "timeoutSeconds": seconds(ANSWER_WITHIN),
            "next": ["save"], "onTimeout": ["tell"]},
        {"id": "save", "type": "RECORD", "kind": "contacts", "next": ["tell"],
            "recordId": "{{ trigger.record }}", "data": {"lastName": "n{{ trigger.mark }}"}},
        tell("any")
    ])
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
