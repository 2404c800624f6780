use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const AHEAD: Duration = Duration::from_mins(5);

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn wrong_fields(body: Value) -> Vec<String> {
    let invalid = Request::parse(body, now(), AHEAD).unwrap_err();
    let errors = invalid.errors().iter();
    errors.map(|error| error.field.clone()).collect()
}

fn fix(extra: &Value) -> Value {
    let mut fix = json!({"lat": 52.5, "lng": 13.4});
    let fields = fix.as_object_mut().unwrap();
    fields.extend(extra.as_object().unwrap().clone());
    fix
}

#[test]
fn a_fix_needs_its_coordinates_and_nothing_else() {
    let Request::One(read) = Request::parse(fix(&json!({})), now(), AHEAD).unwrap() else {
        panic!("one object is one fix");
    };
    assert_eq!((read.lat, read.lng, read.recorded_at), (52.5, 13.4, None));
    assert_eq!(
        read.personal(),
        json!({"lat": 52.5, "lng": 13.4, "accuracy": null, "speed": null,
               "place_name": null, "battery": null})
    );
    assert_eq!(wrong_fields(json!({})), ["lat", "lng"]);
    assert_eq!(
        wrong_fields(json!({"lat": null, "lng": "1"})),
        ["lat", "lng"]
    );
}

#[test]
fn each_field_has_its_range() {
    for (field, wrong) in [
        ("lat", json!(90.000_1)),
        ("lat", json!(-91)),
        ("lng", json!(180.1)),
        ("lng", json!(true)),
        ("accuracy", json!(-0.1)),
        ("accuracy", json!("5")),
        ("speed", json!(-1)),
        ("battery", json!(101)),
        ("battery", json!(-1)),
        ("place_name", json!("x".repeat(201))),
        ("place_name", json!(7)),
        ("place_name", json!("a\0b")),
        ("recorded_at", json!("yesterday")),
        ("recorded_at", json!(1_700_000_000)),
        ("recorded_at", json!("2026-11-21T12:05:01Z")),
    ] {
        assert_eq!(
            wrong_fields(fix(&json!({field: wrong}))),
            [field],
            "{wrong}"
        );
    }
    let edges = json!({"lat": -90, "lng": 180, "accuracy": 0, "speed": 0.0, "battery": 100,
                       "place_name": "ü".repeat(200), "recorded_at": "2026-11-21T13:05:00+01:00",
                       "altitude": 7});
    assert!(Request::parse(fix(&edges), now(), AHEAD).is_ok());
}

#[test]
fn a_fix_may_be_as_far_ahead_as_is_allowed() {
    let ahead = Duration::from_millis(1_500);
    let made = |time: &str| Request::parse(fix(&json!({"recorded_at": time})), now(), ahead);
    assert!(made("2026-11-21T12:00:01.5Z").is_ok());
    let refused = made("2026-11-21T12:00:01.500001Z").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "recorded_at: must not be more than 1.5 seconds in the future"
    );
}

#[test]
fn an_error_in_an_array_names_index_and_field() {
    let good = fix(&json!({}));
    let body = json!([good, good, good, {"lat": 91, "lng": 0}, 7]);
    assert_eq!(wrong_fields(body), ["[3].lat", "[4]"]);
    assert_eq!(wrong_fields(json!([])), ["body"]);
    assert_eq!(
        wrong_fields(Value::Array(vec![good.clone(); 101])),
        ["body"]
    );
    assert!(Request::parse(Value::Array(vec![good; 100]), now(), AHEAD).is_ok());
}

#[test]
fn a_body_counts_what_it_has_whether_or_not_it_is_good() {
    assert_eq!(Request::cost(&json!([1, 2, 3])), 3);
    assert_eq!(Request::cost(&json!([])), 1);
    assert_eq!(Request::cost(&json!({})), 1);
    assert_eq!(Request::cost(&Value::Array(vec![json!(1); 101])), 1);
}

#[test]
fn times_are_cut_to_microseconds() {
    let body = fix(&json!({"recorded_at": "2026-11-21T11:00:00.1234567Z"}));
    let request = Request::parse(body, now(), AHEAD).unwrap();
    let expected = "2026-11-21T11:00:00.123456Z".parse().unwrap();
    assert_eq!(request.fixes()[0].recorded_at, Some(expected));
}

proptest! {
    /// For any array: one new fix for each time not sent before, every response has a time, and a
    /// fix without a time is always a separate fix.
    #[test]
    fn a_time_is_one_fix(
        given in prop::collection::vec(prop::option::of(-3..6_i64), 1..12),
        known in prop::collection::hash_set(-3..6_i64, 0..5),
    ) {
        let at = |micros: i64| now() + TimeDelta::microseconds(micros);
        let plain = Fix { lat: 0.0, lng: 0.0, accuracy: None, speed: None, place_name: None,
                          battery: None, recorded_at: None };
        let fixes: Vec<Fix> = given.iter()
            .map(|micros| Fix { recorded_at: micros.map(at), ..plain.clone() })
            .collect();
        let known: Vec<_> = known.into_iter().map(at).collect();
        let settled = settle_times(&fixes, |time| known.contains(&time), now());
        prop_assert_eq!(settled.len(), fixes.len());
        let mut new = Vec::new();
        for timed in &settled {
            let first = timed.is_new;
            prop_assert!(!(first && (known.contains(&timed.recorded_at) || new.contains(&timed.recorded_at))));
            prop_assert!(first || known.contains(&timed.recorded_at) || new.contains(&timed.recorded_at));
            prop_assert!(first || timed.fix.recorded_at.is_some());
            if first { new.push(timed.recorded_at); }
        }
    }
}
