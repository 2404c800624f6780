use chrono::{DateTime, TimeDelta, Utc};
use schemas::{AccountId, Event, Sealed, SosId};
use serde_json::json;

use super::*;

const CALLER: AccountId = AccountId(1);
const FRIEND: AccountId = AccountId(2);
const STRANGER: AccountId = AccountId(3);

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn triggered(recorded_at: Option<DateTime<Utc>>) -> schemas::sos::Triggered {
    let sealed = Sealed::from_ciphertext("s".to_owned());
    let late_after = TimeDelta::minutes(2);
    trigger(
        SosId::from("s1"),
        CALLER,
        vec![FRIEND],
        recorded_at,
        sealed,
        now(),
        late_after,
    )
}

fn call_of<const N: usize>(events: [&Event; N]) -> Option<Call> {
    events.into_iter().fold(None, Call::after)
}

#[test]
fn a_late_call_still_alerts_and_says_that_it_is_late() {
    assert!(!triggered(None).late);
    assert!(!triggered(Some(now() - TimeDelta::minutes(2))).late);
    let late = triggered(Some(now() - TimeDelta::days(2)));
    assert!(late.late);
    assert_eq!(late.audience, [FRIEND]);
    assert_eq!(
        triggered(Some(now() + TimeDelta::days(1))).recorded_at,
        now()
    );
}

#[test]
fn only_the_audience_acknowledges_and_only_once() {
    let first = Event::SosTriggered(triggered(None));
    let call = call_of([&first]);
    for nobody in [CALLER, STRANGER] {
        assert_eq!(
            answer(call.as_ref(), By::Person(nobody), Reply::Acknowledge),
            Err(NotConcerned)
        );
    }
    let seen = answer(call.as_ref(), By::Person(FRIEND), Reply::Acknowledge)
        .unwrap()
        .unwrap();
    let call = call_of([&first, &seen]);
    assert_eq!(
        answer(call.as_ref(), By::Person(FRIEND), Reply::Acknowledge),
        Ok(None)
    );
}

#[test]
fn the_staff_of_a_notified_organization_acknowledges_once_and_resolves() {
    let first = Event::SosTriggered(triggered(None));
    let call = call_of([&first]);
    let staff = By::Staff(STRANGER);
    let seen = answer(call.as_ref(), staff, Reply::Acknowledge);
    let seen = seen.unwrap().unwrap();
    assert!(matches!(&seen, Event::SosAcknowledged(answered) if answered.by == STRANGER));
    let call = call_of([&first, &seen]);
    assert_eq!(answer(call.as_ref(), staff, Reply::Acknowledge), Ok(None));
    assert!(matches!(
        answer(call.as_ref(), staff, Reply::Resolve),
        Ok(Some(Event::SosResolved(_)))
    ));
    assert_eq!(answer(None, staff, Reply::Resolve), Err(NotConcerned));
}

#[test]
fn caller_and_audience_resolve() {
    let first = Event::SosTriggered(triggered(None));
    let call = call_of([&first]);
    assert_eq!(
        answer(call.as_ref(), By::Person(STRANGER), Reply::Resolve),
        Err(NotConcerned)
    );
    assert_eq!(
        answer(None, By::Person(CALLER), Reply::Resolve),
        Err(NotConcerned)
    );
    for somebody in [CALLER, FRIEND] {
        let resolved = answer(call.as_ref(), By::Person(somebody), Reply::Resolve)
            .unwrap()
            .unwrap();
        let ended = call_of([&first, &resolved]);
        assert_eq!(
            answer(ended.as_ref(), By::Person(FRIEND), Reply::Acknowledge),
            Ok(None)
        );
        assert_eq!(
            answer(ended.as_ref(), By::Person(CALLER), Reply::Resolve),
            Ok(None)
        );
    }
}

#[test]
fn nothing_need_be_said_but_what_is_said_must_be_right() {
    assert_eq!(Request::parse(json!({})), Ok(Request::default()));
    for (body, field) in [
        (json!({"lat": 1}), "lng"),
        (json!({"lng": 1}), "lat"),
        (json!({"lat": 91, "lng": 1}), "lat"),
        (json!({"message": "x".repeat(1_001)}), "message"),
        (json!({"recorded_at": "now"}), "recorded_at"),
        (json!([]), "body"),
    ] {
        let invalid = Request::parse(body).unwrap_err();
        assert_eq!(invalid.errors()[0].field, field);
    }
}
