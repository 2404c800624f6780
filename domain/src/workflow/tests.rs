use chrono::{TimeZone, Utc};
use schemas::workflow::{Action, Definition, Join, Status};
use schemas::{Event, WorkflowId};
use serde_json::{Value, json};

use super::*;
use crate::Invalid;

mod schema;
mod steps;

fn id() -> WorkflowId {
    WorkflowId::from("w1")
}

fn read(definition: Value) -> Result<Definition, Invalid> {
    parse(&id(), definition)
}

fn whole() -> Value {
    json!({
        "name": "Welcome a lead", "status": "ACTIVE", "timeoutSeconds": 3600,
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["call", "note"]},
            {"id": "call", "type": "HTTP", "method": "POST",
             "url": "https://crm.example/leads/{{ trigger.id }}",
             "headers": {"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"},
             "body": {"email": "{{ trigger.email }}"}, "timeoutSeconds": 5,
             "retry": {"maxAttempts": 5, "initialSeconds": 0.5, "maxSeconds": 60},
             "acceptStatus": [200, 201], "next": ["tell"]},
            {"id": "note", "type": "NOTIFY", "event": "seen", "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
             "data": {"status": "{{ steps.call.output.status }}"}, "join": "all"}
        ]
    })
}

/// The whole definition with one of its steps changed.
fn with_step(nth: usize, change: impl FnOnce(&mut Value)) -> Value {
    let mut definition = whole();
    change(&mut definition["steps"][nth]);
    definition
}

fn errors(definition: Value) -> Vec<String> {
    let invalid = read(definition).unwrap_err();
    invalid.errors().iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_definition_is_read() {
    let definition = read(whole()).unwrap();
    assert_eq!(definition.status, Status::Active);
    assert_eq!(definition.timeout_seconds, 3_600);
    let [start, call, _, tell] = definition.steps.as_slice() else {
        panic!("{definition:?}");
    };
    assert!(matches!(start.action, Action::Trigger(_)));
    let Action::Http(http) = &call.action else {
        panic!("{call:?}");
    };
    assert_eq!(http.retry.max_attempts, 5);
    assert_eq!(http.accept_status, [200, 201]);
    assert_eq!(tell.join, Join::All);
}

#[test]
fn what_is_left_out_has_its_default() {
    let definition = read(json!({
        "name": "N", "status": "DRAFT",
        "steps": [{"id": "a", "type": "HTTP", "url": "http://x.example/"},
                  {"id": "b", "type": "NOTIFY", "event": "e"}]
    }));
    let definition = definition.unwrap();
    assert_eq!(definition.timeout_seconds, DEFAULT_TIMEOUT_SECONDS);
    let Action::Http(http) = &definition.steps[0].action else {
        panic!("{definition:?}");
    };
    assert_eq!((http.method.as_str(), http.timeout_seconds), ("GET", 15));
    assert_eq!(http.retry.max_attempts, 3);
    assert_eq!(definition.steps[1].join, Join::Any);
}

#[test]
fn all_errors_are_reported_together_each_with_its_place() {
    let definition = json!({
        "status": "RUNNING", "timeoutSeconds": 0, "color": "red", "workflowId": "w2",
        "steps": [
            {"id": "a b", "type": "HTTP", "url": "ftp://x.example", "body": 1,
             "retry": {"maxAttempts": 0, "patience": 1}, "acceptStatus": [200, 99]},
            {"id": "c", "type": "SLEEP"},
            {"type": "NOTIFY", "event": "a b", "next": "c"},
            7
        ]
    });
    insta::assert_json_snapshot!(errors(definition), @r#"
    [
      "workflowId: must equal the id in the path",
      "name: is required",
      "status: must be one of DRAFT, ACTIVE, PAUSED, ARCHIVED",
      "timeoutSeconds: must be a whole number from 1 to 31536000",
      "steps[0].id: must be 1 to 64 letters, digits, _ or -",
      "steps[0].url: must begin with http:// or https://",
      "steps[0].method: is required: one of GET, POST, PUT, PATCH, DELETE",
      "steps[0].retry.maxAttempts: must be a whole number from 1 to 100",
      "steps[0].retry.patience: unknown field",
      "steps[0].acceptStatus[1]: must be a whole number from 100 to 599",
      "steps[1].type: must be one of TRIGGER, HTTP, NOTIFY, CONDITION, DELAY, WAIT_FOR_EVENT, RECORD",
      "steps[2].id: is required",
      "steps[2].next: must be an array, not a string",
      "steps[2].event: must be at most 64 letters, digits, _ or -, in parts with a dot between them",
      "steps[3]: must be an object, not a number",
      "color: unknown field"
    ]
    "#);
}

#[test]
fn a_body_that_is_no_object_says_so() {
    assert_eq!(
        errors(json!([1])),
        ["body: must be an object, not an array"]
    );
    assert_eq!(
        errors(json!({"name": "N", "status": "DRAFT"})),
        ["steps: is required (it may be empty)"]
    );
    assert_eq!(
        errors(json!({"name": "N", "status": "DRAFT", "steps": null})),
        ["steps: is required (it may be empty)"]
    );
    assert_eq!(
        errors(json!({"name": "N", "steps": []})),
        ["status: is required: one of DRAFT, ACTIVE, PAUSED, ARCHIVED"]
    );
}

#[test]
fn steps_must_hold_together() {
    for (definition, expected) in [
        (
            with_step(2, |step| step["id"] = json!("call")),
            "steps[2].id: is already the id of steps[1]",
        ),
        (
            with_step(2, |step| step["next"] = json!(["tell", "gone"])),
            "steps[2].next[1]: no step has this id",
        ),
        (
            with_step(2, |step| step["next"] = json!(["tell", "tell"])),
            "steps[2].next[1]: lists the same step twice",
        ),
        (
            with_step(2, |step| *step = json!({"id": "note", "type": "TRIGGER"})),
            "steps[2].type: only one TRIGGER step is allowed",
        ),
        (
            with_step(3, |step| step["next"] = json!(["start"])),
            "steps[3].next[0]: must not lead to the TRIGGER step",
        ),
        (
            with_step(3, |step| step["next"] = json!(["call"])),
            "steps[1].next: forms a loop: call -> tell -> call",
        ),
        (
            with_step(3, |step| step["next"] = json!(["tell"])),
            "steps[3].next: forms a loop: tell -> tell",
        ),
        (
            with_step(0, |step| step["next"] = json!(["call"])),
            "steps[2]: cannot be reached from the TRIGGER step",
        ),
        (
            with_step(2, |step| {
                step["data"] = json!({"x": "{{ steps.tell.output }}"});
            }),
            "steps[2]: uses steps.tell, but no step with this id comes before it",
        ),
    ] {
        assert_eq!(errors(definition)[0], expected);
    }
}

#[test]
fn templates_are_judged_where_they_stand() {
    for (definition, place) in [
        (
            with_step(1, |step| {
                step["url"] = json!("https://x.example/{{ trigger.id");
            }),
            "steps[1].url: ",
        ),
        (
            with_step(1, |step| {
                step["body"] = json!({"a": [1, "{{ nobody.knows }}"]});
            }),
            "steps[1].body.a[1]: ",
        ),
        (
            with_step(1, |step| step["headers"] = json!({"X-Id": "{{ }}"})),
            "steps[1].headers.X-Id: ",
        ),
        (
            with_step(2, |step| step["data"] = json!({"a": "{{ 1 + }}"})),
            "steps[2].data.a: ",
        ),
        (
            with_step(2, |step| step["data"] = json!({"a": "{{ secrets.KEY }}"})),
            "steps[2].data.a: uses secrets.KEY; secrets are not allowed here because events are \
             readable",
        ),
        (
            with_step(1, |step| step["url"] = json!("file:///{{ trigger.id }}")),
            "steps[1].url: must begin with",
        ),
    ] {
        let errors = errors(definition);
        assert!(errors[0].starts_with(place), "{errors:?}");
    }
}

#[test]
fn headers_that_would_break_the_message_are_refused() {
    for (name, value) in [
        ("", json!("x")),
        ("a b", json!("x")),
        ("Host", json!("x")),
        ("content-length", json!("1")),
        ("X", json!("a\r\nY: b")),
        ("X", json!(1)),
    ] {
        let definition = with_step(1, |step| step["headers"] = json!({ name: value.clone() }));
        let errors = errors(definition);
        assert!(
            errors[0].starts_with(&format!("steps[1].headers.{name}: ")),
            "{errors:?}"
        );
    }
}

#[test]
fn a_workflow_without_a_beginning_is_legal_and_cannot_be_triggered() {
    let definition = read(json!({"name": "N", "status": "ACTIVE", "steps": []})).unwrap();
    let Saving::Saved(saved) = save(id(), definition, None) else {
        panic!("not saved");
    };
    assert_eq!(
        Summary::from(&saved).triggerable(),
        Err(NotTriggerable::NoTrigger)
    );
}

#[test]
fn only_an_active_workflow_can_be_triggered() {
    for (status, triggerable) in [
        ("ACTIVE", true),
        ("DRAFT", false),
        ("PAUSED", false),
        ("ARCHIVED", false),
    ] {
        let mut definition = whole();
        definition["status"] = json!(status);
        let Saving::Saved(saved) = save(id(), read(definition).unwrap(), None) else {
            panic!("not saved");
        };
        assert_eq!(
            Summary::from(&saved).triggerable().is_ok(),
            triggerable,
            "{status}"
        );
    }
}

#[test]
fn saving_counts_versions_and_saving_again_changes_nothing() {
    let definition = read(whole()).unwrap();
    let Saving::Saved(first) = save(id(), definition.clone(), None) else {
        panic!("not saved");
    };
    assert_eq!(first.version, 1);
    let first = Event::WorkflowSaved(first);
    let again = save(id(), definition.clone(), Some(&first));
    assert_eq!(again, Saving::Unchanged { version: 1 });
    let paused = Definition {
        status: Status::Paused,
        ..definition
    };
    let Saving::Saved(second) = save(id(), paused, Some(&first)) else {
        panic!("not saved");
    };
    assert_eq!(second.version, 2);
}

#[test]
fn only_the_server_says_who_triggered_and_when() {
    let Value::Object(given) = json!({"triggeredBy": "me", "a": 1}) else {
        panic!();
    };
    let at = Utc.with_ymd_and_hms(2026, 11, 21, 9, 0, 0).unwrap();
    let payload = payload(given, TriggeredBy::ApiKey, at);
    let expected =
        json!({"triggeredBy": "api_key", "a": 1, "triggeredAt": "2026-11-21T09:00:00.000Z"});
    assert_eq!(Value::Object(payload), expected);
}

#[test]
fn an_id_is_text_without_control_characters() {
    assert!(parse_id("welcome lead/ä").is_ok());
    for wrong in ["", "a\n", &"x".repeat(129)] {
        assert_eq!(parse_id(wrong).unwrap_err().field, "workflowId");
    }
}

#[test]
fn all_steps_together_have_so_many_expressions() {
    let with = |count: usize| {
        let values = vec!["{{ trigger.id }}"; count - 3];
        // Three are in other steps.
        read(with_step(3, |step| {
            step["data"] = json!({ "values": values });
        }))
    };
    with(1_000).unwrap();
    let refused = with(1_001).unwrap_err().to_string();
    assert!(
        refused.contains("steps: must have at most 1000 expressions"),
        "{refused}"
    );
    assert!(refused.contains("has 1001"), "{refused}");
}
