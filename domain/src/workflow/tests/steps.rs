//! Steps that branch, wait, write or are triggered.

use schemas::workflow::{Action, On, Trigger};
use serde_json::{Value, json};

use super::{errors, read};

/// A definition with a fork, a pause and a record.
fn branching() -> Value {
    json!({
        "name": "N", "status": "ACTIVE",
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["hot"]},
            {"id": "hot", "type": "CONDITION", "if": "trigger.score >= 80 and run.id",
             "then": ["save"], "else": ["later"]},
            {"id": "later", "type": "DELAY", "seconds": 0.5, "next": ["save"]},
            {"id": "save", "type": "RECORD", "kind": "orders", "recordId": "{{ trigger.id }}",
             "data": {"orderNumber": "A", "client": {"name": "{{ trigger.name }}"}}}
        ]
    })
}

#[test]
fn forks_pauses_and_records_are_read() {
    let definition = read(branching()).unwrap();
    let [_, hot, later, save] = definition.steps.as_slice() else {
        panic!("{definition:?}");
    };
    let ways: Vec<_> = hot
        .ways()
        .iter()
        .map(|(way, ids)| (way.name(), ids[0].to_string()))
        .collect();
    assert_eq!(
        ways,
        [("then", "save".to_owned()), ("else", "later".to_owned())]
    );
    let Action::Delay(delay) = &later.action else {
        panic!("{later:?}");
    };
    assert!((delay.seconds - 0.5).abs() < f64::EPSILON);
    let Action::Record(record) = &save.action else {
        panic!("{save:?}");
    };
    assert_eq!(record.kind, "orders");
    assert_eq!(record.record_id.as_deref(), Some("{{ trigger.id }}"));
}

#[test]
fn forks_pauses_and_records_are_judged_where_they_stand() {
    for (nth, change, expected) in [
        (1, json!({"if": "trigger.score >="}), "steps[1].if: "),
        (
            1,
            json!({"if": "{{ trigger.score }}"}),
            "steps[1].if: is an expression: write it without",
        ),
        (
            1,
            json!({"if": "data.score > 1"}),
            "steps[1].if: {{ data.score > 1 }}: unknown variable data",
        ),
        (
            1,
            json!({"if": "secrets.KEY"}),
            "steps[1].if: {{ secrets.KEY }}: a secret can only",
        ),
        (1, json!({"if": null}), "steps[1].if: is required"),
        (
            1,
            json!({"if": "steps.later.output"}),
            "steps[1]: uses steps.later, but no step",
        ),
        (1, json!({"next": ["save"]}), "steps[1].next: unknown field"),
        (
            1,
            json!({"then": ["gone"]}),
            "steps[1].then[0]: no step has this id",
        ),
        (
            1,
            json!({"else": ["later", "later"]}),
            "steps[1].else[1]: lists the same step twice",
        ),
        (
            1,
            json!({"else": ["start"]}),
            "steps[1].else[0]: must not lead to the TRIGGER step",
        ),
        (1, json!({"else": []}), "steps[2]: cannot be reached"),
        (
            2,
            json!({"next": ["hot"]}),
            "steps[1].else: forms a loop: hot -> later -> hot",
        ),
        (2, json!({"seconds": null}), "steps[2].seconds: "),
        (2, json!({"seconds": -1}), "steps[2].seconds: must be"),
        (
            2,
            json!({"seconds": 31_536_001}),
            "steps[2].seconds: must be",
        ),
        (
            2,
            json!({"seconds": "5"}),
            "steps[2].seconds: must be a number",
        ),
        (
            3,
            json!({"kind": "people"}),
            "steps[3].kind: must be one of companies",
        ),
        (3, json!({"recordId": ""}), "steps[3].recordId: "),
        (
            3,
            json!({"recordId": "{{ secrets.KEY }}"}),
            "steps[3].recordId: uses secrets.KEY",
        ),
        (3, json!({"data": null}), "steps[3].data: "),
        (
            3,
            json!({"data": {"colour": 1}}),
            "steps[3].data.colour: unknown field",
        ),
        (
            3,
            json!({"data": {"plan": "{{ oops }}"}}),
            "steps[3].data.plan: {{ oops }}: unknown variable",
        ),
        (
            3,
            json!({"data": {"plan": "{{ secrets.KEY }}"}}),
            "steps[3].data.plan: uses secrets.KEY",
        ),
    ] {
        let mut definition = branching();
        let step = definition["steps"][nth].as_object_mut().unwrap();
        step.extend(change.as_object().unwrap().clone());
        let errors = errors(definition);
        assert!(errors[0].starts_with(expected), "{change}: {errors:?}");
    }
}

/// A definition that events trigger and that waits for one.
fn waiting() -> Value {
    json!({
        "name": "N", "status": "ACTIVE",
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["reply"],
             "on": {"event": "lead.*", "filter": "data.score >= 50"}},
            {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "contact.updated",
             "match": "data.email == trigger.email", "timeoutSeconds": 60, "next": ["yes"],
             "onTimeout": ["no"]},
            {"id": "yes", "type": "NOTIFY", "event": "yes"},
            {"id": "no", "type": "NOTIFY", "event": "no"}
        ]
    })
}

#[test]
fn what_sets_off_and_what_is_waited_for_is_read() {
    let definition = read(waiting()).unwrap();
    let Action::Trigger(Trigger {
        on: Some(On::Event(on)),
    }) = &definition.steps[0].action
    else {
        panic!("{definition:?}");
    };
    assert_eq!(
        (on.event.as_str(), on.filter.as_deref()),
        ("lead.*", Some("data.score >= 50"))
    );
    let Action::WaitForEvent(wait) = &definition.steps[1].action else {
        panic!("{definition:?}");
    };
    assert_eq!(
        (wait.timeout_seconds, wait.on_timeout.len()),
        (Some(60.0), 1)
    );
    let mut definition = waiting();
    definition["steps"][0]["on"] = json!({"schedule": "0 9 * * 1-5"});
    definition["steps"][1]["match"] = json!(null);
    let definition = read(definition).unwrap();
    let Action::Trigger(Trigger {
        on: Some(On::Schedule(on)),
    }) = &definition.steps[0].action
    else {
        panic!("{definition:?}");
    };
    assert_eq!(
        (on.schedule.as_str(), on.timezone.as_str()),
        ("0 9 * * 1-5", "UTC")
    );
}

#[test]
fn errors_in_triggers_and_awaited_events_are_reported_with_their_place() {
    for (nth, change, expected) in [
        (
            0,
            json!({"on": "lead.created"}),
            "steps[0].on: must be an object",
        ),
        (
            0,
            json!({"on": {}}),
            "steps[0].on: must have an event or a schedule",
        ),
        (
            0,
            json!({"on": {"event": "lead.craeted"}}),
            "steps[0].on.event: must be *, a type",
        ),
        (
            0,
            json!({"on": {"event": "location.updated"}}),
            "steps[0].on.event: positions do",
        ),
        (
            0,
            json!({"on": {"event": "*", "schedule": "0 9 * * *"}}),
            "steps[0].on.schedule: cannot",
        ),
        (
            0,
            json!({"on": {"event": "*", "filter": "data.a +"}}),
            "steps[0].on.filter: ",
        ),
        (
            0,
            json!({"on": {"event": "*", "filter": "trigger.a"}}),
            "steps[0].on.filter: {{ trigger.a }}: unknown variable trigger; available: data",
        ),
        (
            0,
            json!({"on": {"event": "*", "color": 1}}),
            "steps[0].on.color: unknown field",
        ),
        (
            0,
            json!({"on": {"schedule": "0 9 * *"}}),
            "steps[0].on.schedule: must have five fields",
        ),
        (
            0,
            json!({"on": {"schedule": "0 25 * * *"}}),
            "steps[0].on.schedule: is not a valid cron",
        ),
        (
            0,
            json!({"on": {"schedule": "0 9 * * *", "timezone": "Berlin"}}),
            "steps[0].on.timezone: must be an IANA time zone",
        ),
        (1, json!({"event": null}), "steps[1].event: is required"),
        (
            1,
            json!({"event": "nobody.knows"}),
            "steps[1].event: must be *, a type",
        ),
        (1, json!({"match": "data.email =="}), "steps[1].match: "),
        (
            1,
            json!({"match": "steps.no.output"}),
            "steps[1]: uses steps.no, but no step",
        ),
        (
            1,
            json!({"timeoutSeconds": null}),
            "steps[1].onTimeout: requires timeoutSeconds",
        ),
        (
            1,
            json!({"timeoutSeconds": -1}),
            "steps[1].timeoutSeconds: must be",
        ),
        (
            1,
            json!({"onTimeout": ["gone"]}),
            "steps[1].onTimeout[0]: no step has this id",
        ),
        (1, json!({"onTimeout": []}), "steps[3]: cannot be reached"),
        (
            3,
            json!({"next": ["reply"]}),
            "steps[1].onTimeout: forms a loop",
        ),
    ] {
        let mut definition = waiting();
        let step = definition["steps"][nth].as_object_mut().unwrap();
        step.extend(change.as_object().unwrap().clone());
        let errors = errors(definition);
        assert!(errors[0].starts_with(expected), "{change}: {errors:?}");
    }
}

#[test]
fn a_pattern_that_only_positions_match_is_refused() {
    for pattern in ["location.updated", "location.*"] {
        for (nth, change, place) in [
            (0, json!({"on": {"event": pattern}}), "steps[0].on.event"),
            (1, json!({"event": pattern}), "steps[1].event"),
        ] {
            let mut definition = waiting();
            let step = definition["steps"][nth].as_object_mut().unwrap();
            step.extend(change.as_object().unwrap().clone());
            let errors = errors(definition);
            let expected = format!("{place}: positions do not trigger workflows");
            assert!(errors[0].starts_with(&expected), "{pattern}: {errors:?}");
        }
    }
    // Others match it too.
    let mut definition = waiting();
    definition["steps"][0]["on"] = json!({"event": "*"});
    read(definition).unwrap();
}

#[test]
fn what_is_nested_too_deep_for_an_event_is_refused() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    let definition = |levels: usize| {
        json!({
            "name": "N", "status": "DRAFT",
            "steps": [
                {"id": "call", "type": "HTTP", "method": "POST", "url": "http://x.example/",
                 "body": nested(levels)},
                {"id": "tell", "type": "NOTIFY", "event": "e", "data": nested(levels)},
                {"id": "save", "type": "RECORD", "kind": "orders",
                 "data": {"client": nested(levels - 1)}}
            ]
        })
    };
    assert!(read(definition(100)).is_ok());
    let reason = "must not be nested more than 100 levels deep";
    let places = ["steps[0].body", "steps[1].data", "steps[2].data"];
    let expected = places.map(|place| format!("{place}: {reason}"));
    assert_eq!(errors(definition(101)), expected);
}
