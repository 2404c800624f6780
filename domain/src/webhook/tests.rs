use schemas::webhook::{Disabled, Status};
use schemas::{Event, Sealed, WebhookId};
use serde_json::{Value, json};

use super::*;
use crate::target::Ranges;

fn created() -> Event {
    let request = Request::parse(
        json!({"url": "https://x.example/", "events": ["run.*"]}),
        &Ranges::default(),
    );
    create(
        WebhookId::from("h1"),
        request.unwrap(),
        Sealed::from_ciphertext("s".to_owned()),
    )
}

fn wrong_fields(body: Value) -> Vec<String> {
    let invalid = Request::parse(body, &Ranges::default()).unwrap_err();
    invalid
        .errors()
        .iter()
        .map(|error| error.field.clone())
        .collect()
}

#[test]
fn a_request_names_what_is_wrong_with_it() {
    assert_eq!(wrong_fields(json!({})), ["url"]);
    assert_eq!(wrong_fields(json!({"url": "http://10.0.0.1/"})), ["url"]);
    let body = json!({"url": "https://x.example/", "events": ["nope", 1], "secret": "s"});
    assert_eq!(wrong_fields(body), ["events[1]", "secret"]);
    let body = json!({"url": "https://x.example/", "events": ["run.*", "nope"], "description": 1});
    assert_eq!(wrong_fields(body), ["events[1]", "description"]);
    assert_eq!(
        wrong_fields(json!({"url": "https://x.example/", "events": []})),
        ["events"]
    );
    assert!(Request::parse(json!({"url": "http://10.0.0.1/"}), &Ranges::usual()).is_ok());
}

#[test]
fn absent_events_mean_all() {
    let request = Request::parse(json!({"url": "https://x.example/"}), &Ranges::default()).unwrap();
    assert_eq!(request.events, ["*"]);
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let endpoint = Endpoint::fold([&created()]).unwrap();
    let request = ChangeRequest::parse(json!({"status": "DISABLED"}), &Ranges::default()).unwrap();
    let (changed, event) = change(&endpoint, request);
    let event = event.unwrap();
    assert_eq!(changed.events, ["run.*"]);
    assert_eq!(changed.status, Status::Disabled);
    let first = created();
    assert_eq!(Endpoint::fold([&first, &event]), Some(changed.clone()));
    assert_eq!(change(&changed, ChangeRequest::default()).1, None);
}

#[test]
fn a_change_names_what_is_wrong_with_it() {
    for (body, field) in [
        (json!({"status": "PAUSED"}), "status"),
        (json!({"url": "nowhere"}), "url"),
        (json!({"id": "h2"}), "id"),
    ] {
        let invalid = ChangeRequest::parse(body, &Ranges::default()).unwrap_err();
        assert_eq!(invalid.errors()[0].field, field);
    }
}

#[test]
fn an_endpoint_is_what_its_events_made_of_it() {
    let first = created();
    let disabled = Event::WebhookDisabled(Disabled {
        id: WebhookId::from("h1"),
        reason: "only failures".to_owned(),
    });
    let endpoint = Endpoint::fold([&first, &disabled]).unwrap();
    assert_eq!(endpoint.status, Status::Disabled);
    assert_eq!(
        Endpoint::fold([&first, &disabled, &delete(&endpoint)]),
        None
    );
    assert_eq!(Endpoint::fold([]), None);
}
