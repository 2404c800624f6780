//! Schemas of a workflow's definition.

use schemas::workflow::StepType;
use serde_json::{Value, json};

use super::shape::{
    array, id, integer, like, meaning, name, nullable, number, request, schema, word,
};

pub(super) const STATUSES: &[&str] = &["DRAFT", "ACTIVE", "PAUSED", "ARCHIVED"];

/// The types of steps.
pub(super) fn types() -> [&'static str; StepType::ALL.len()] {
    StepType::ALL.map(StepType::name)
}

fn step_id() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})
}

fn ways() -> Value {
    json!({
        "type": ["array", "null"], "items": step_id(), "maxItems": 100, "uniqueItems": true,
        "description": "The steps that follow.",
    })
}

fn step(
    kind: &str,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
    required: &[&str],
) -> Value {
    let mut all = vec![
        ("id", step_id()),
        ("type", json!({"const": kind})),
        ("next", ways()),
        (
            "join",
            meaning(
                nullable(word(&["any", "all"])),
                "Start after the first predecessor (`any`) or after all that are not skipped \
                 (`all`).",
            ),
        ),
    ];
    all.extend(fields);
    let always = ["id", "type"];
    let required: Vec<_> = always.iter().chain(required).copied().collect();
    request(all, &required)
}

fn http() -> Value {
    let seconds = || nullable(number(0.0, 86_400.0));
    let retry = request(
        vec![
            ("maxAttempts", nullable(integer(1, 100))),
            ("initialSeconds", seconds()),
            ("maxSeconds", seconds()),
        ],
        &[],
    );
    let fields = [
        (
            "method",
            meaning(
                nullable(word(&["GET", "POST", "PUT", "PATCH", "DELETE"])),
                "Default `GET`; required if there is a body.",
            ),
        ),
        (
            "url",
            like(
                json!({"type": "string", "minLength": 1, "maxLength": 2048}),
                "https://crm.example/leads/{{ trigger.id }}",
            ),
        ),
        (
            "headers",
            json!({
                "type": ["object", "null"], "maxProperties": 50,
                "additionalProperties": {
                    "type": "string", "maxLength": 8192,
                    "pattern": r"^[^\u0000-\u0008\u000A-\u001F\u007F-\u009F]*$",
                },
            }),
        ),
        (
            "body",
            meaning(json!({}), "JSON; strings in it may be templates."),
        ),
        ("timeoutSeconds", nullable(integer(1, 300))),
        ("retry", json!({"anyOf": [retry, {"type": "null"}]})),
        (
            "acceptStatus",
            json!({
                "type": ["array", "null"], "items": integer(100, 599), "maxItems": 500,
                "description": "Statuses that count as success. Default: 2xx.",
            }),
        ),
    ];
    step("HTTP", fields, &["url"])
}

fn notify() -> Value {
    let part = "[A-Za-z0-9_-]+";
    let event = json!({
        "type": "string", "maxLength": 64, "pattern": format!(r"^{part}(\.{part})*$"),
        "description": "The event's type becomes `custom.<event>`.",
    });
    let data = json!({
        "type": ["object", "null"],
        "description": "The event's data; strings in it may be templates.",
    });
    step("NOTIFY", [("event", event), ("data", data)], &["event"])
}

fn expression() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 2048})
}

fn condition() -> Value {
    let test = like(expression(), "trigger.score >= 80");
    let fields = [("if", test), ("then", ways()), ("else", ways())];
    let mut step = step("CONDITION", fields, &["if"]);
    // It continues by `then` and `else` only.
    if let Some(fields) = step["properties"].as_object_mut() {
        fields.shift_remove("next");
    }
    step
}

fn delay() -> Value {
    let seconds = number(0.0, 31_536_000.0);
    step("DELAY", [("seconds", seconds)], &["seconds"])
}

fn event_type() -> Value {
    let event = json!({"type": "string", "minLength": 1, "maxLength": 128});
    like(event, "lead.created")
}

/// What triggers a workflow, besides the API and people.
fn trigger() -> Value {
    let event = request(
        vec![
            ("event", event_type()),
            ("filter", like(nullable(expression()), "data.score >= 50")),
        ],
        &["event"],
    );
    let schedule = json!({
        "type": "string", "maxLength": 200,
        "description": "Cron expression: minute, hour, day of month, month, day of week.",
    });
    let schedule = request(
        vec![
            ("schedule", like(schedule, "0 9 * * 1-5")),
            (
                "timezone",
                meaning(
                    json!({"type": ["string", "null"]}),
                    "IANA time zone such as `Europe/Berlin`. Default: `UTC`.",
                ),
            ),
        ],
        &["schedule"],
    );
    let on = json!({"anyOf": [event, schedule, {"type": "null"}]});
    step("TRIGGER", [("on", on)], &[])
}

fn wait() -> Value {
    let matching = like(nullable(expression()), "data.email == trigger.email");
    let timeout = meaning(
        nullable(number(0.0, 31_536_000.0)),
        "How long to wait. Default: until the run's own timeout.",
    );
    let fields = [
        ("event", event_type()),
        ("match", matching),
        ("timeoutSeconds", timeout),
        ("onTimeout", ways()),
    ];
    step("WAIT_FOR_EVENT", fields, &["event"])
}

fn record() -> Value {
    let kinds = [
        "companies",
        "deals",
        "contacts",
        "orders",
        "leads",
        "clients",
    ];
    let id = json!({
        "type": ["string", "null"], "minLength": 1,
        "description": "May be a template. Default: the data's own `id`, or a new one.",
    });
    let data = json!({
        "type": "object", "description": "The record's fields; strings in it may be templates.",
    });
    let fields = [("kind", word(&kinds)), ("recordId", id), ("data", data)];
    step("RECORD", fields, &["kind", "data"])
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let steps = types().into_iter().map(|kind| schema(&step_name(kind)));
    let steps: Vec<Value> = steps.collect();
    let any = json!({"oneOf": steps});
    let mut steps = array(&any);
    steps["maxItems"] = 500.into();
    let mut definition = request(
        vec![
            (
                "workflowId",
                meaning(nullable(id()), "If given, must equal the id in the path."),
            ),
            ("name", like(name(200), "Welcome a lead")),
            ("status", word(STATUSES)),
            (
                "timeoutSeconds",
                meaning(
                    nullable(integer(1, 31_536_000)),
                    "A run that takes longer is FAILED. Default: one day.",
                ),
            ),
            ("steps", steps),
        ],
        &["name", "status", "steps"],
    );
    definition["examples"] = json!([{
        "name": "Welcome a lead",
        "status": "ACTIVE",
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
             "data": {"email": "{{ trigger.email }}"}},
        ],
    }]);
    vec![
        ("WorkflowDefinition", definition),
        ("TriggerStep", trigger()),
        ("HttpStep", http()),
        ("NotifyStep", notify()),
        ("ConditionStep", condition()),
        ("DelayStep", delay()),
        ("WaitForEventStep", wait()),
        ("RecordStep", record()),
    ]
}

/// `HTTP` is described as `HttpStep`.
fn step_name(kind: &str) -> String {
    let words = kind.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_lowercase())
    });
    words.chain(["Step".to_owned()]).collect()
}
