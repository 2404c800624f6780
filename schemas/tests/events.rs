//! Events that no sample covers.

use proptest::prelude::*;
use schemas::{CATALOG, DecodeError, Event, Traceparent, Visibility};
use serde_json::{Map, Value, json};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".*", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn json_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((".*", json_value()), 0..5)
        .prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn an_event_of_the_users_own_survives_with_any_name_and_data(name in ".*", data in json_object()) {
        let event = Event::decode(&format!("custom.{name}.v1"), Value::from(data.clone()).to_string().as_bytes()).unwrap();
        prop_assert_eq!(event.name(), format!("custom.{name}"));
        prop_assert_eq!(event.visibility(), Visibility::Public);
        prop_assert_eq!(event.public_data().unwrap(), Value::from(data));
        let again = Event::decode(&event.recorded_type(), &event.encode().unwrap()).unwrap();
        prop_assert_eq!(again, event);
    }

    #[test]
    fn anything_in_the_log_decodes_or_fails_without_a_panic(
        entry in 0..CATALOG.len(),
        data in prop_oneof![
            json_object().prop_map(|data| Value::from(data).to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..64),
        ],
    ) {
        let recorded_type = CATALOG[entry].recorded_type();
        if let Ok(event) = Event::decode(&recorded_type, &data) {
            prop_assert_eq!(event.recorded_type(), recorded_type);
            prop_assert!(event.encode().is_ok());
        }
    }

    #[test]
    fn a_traceparent_is_kept_as_it_came_or_refused(text in "\\PC{0,60}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}") {
        if let Some(parsed) = Traceparent::parse(&text) {
            prop_assert_eq!(parsed.as_str(), &text);
            let next = parsed.with_span(7);
            prop_assert_eq!(next.trace_id(), parsed.trace_id());
            prop_assert_eq!(Traceparent::parse(next.as_str()), Some(next.clone()));
        }
    }
}

#[test]
fn an_unknown_type_or_a_newer_version_is_named() {
    for name in [
        "nobody.knows.v1",
        "run.started.v2",
        "run.started",
        "custom.x",
        "",
    ] {
        let error = Event::decode(name, b"{}").unwrap_err();
        assert!(matches!(error, DecodeError::UnknownType(unknown) if unknown == name));
    }
}

#[test]
fn an_event_from_before_levels_were_limited_decodes() {
    let data = json!({
        "runId": "r", "workflowId": "w", "workflowVersion": 1,
        "triggerPayload": (1..127).fold(json!({}), |inner, _| json!({ "a": inner })),
    });
    let event = Event::decode("workflow.triggered.v1", data.to_string().as_bytes()).unwrap();
    assert_eq!(event.public_data().unwrap(), data);
}

#[test]
fn an_unknown_field_of_a_known_type_does_no_harm() {
    let data = json!({ "runId": "r", "workflowId": "w", "addedLater": true });
    let event = Event::decode("run.started.v1", data.to_string().as_bytes()).unwrap();
    assert_eq!(event.name(), "run.started");
}

#[test]
fn a_sealed_value_does_not_print() {
    let data = json!({ "name": "T", "value": "v1.ciphertext" });
    let event = Event::decode("secret.set.v1", data.to_string().as_bytes()).unwrap();
    assert!(!format!("{event:?}").contains("ciphertext"));
}

#[test]
fn what_no_trace_bears_is_refused() {
    let zero_trace = "00-00000000000000000000000000000000-0123456789abcdef-01";
    let zero_span = "00-0123456789abcdef0123456789abcdef-0000000000000000-01";
    let version_ff = "ff-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    let upper_case = "00-0123456789ABCDEF0123456789abcdef-0123456789abcdef-01";
    for text in [zero_trace, zero_span, version_ff, upper_case, ""] {
        assert_eq!(Traceparent::parse(text), None, "{text}");
    }
    assert_eq!(
        Traceparent::from_parts(1, 0).as_str(),
        "00-00000000000000000000000000000001-0000000000000001-01"
    );
}
