//! Replays, test deliveries and secret rotation.

use chrono::{DateTime, Utc};
use schemas::webhook::{Replay, ReplayRequested, SecretRotated, Status, TestRequested};
use schemas::{DeliveryId, Event, Sealed};
use serde_json::Value;

use super::Endpoint;
use crate::Invalid;
use crate::object::{Errors, Object};

/// The fields of which a request has exactly one.
const ONE_OF: &str = "deliveryId, after or failed";

/// The deliveries to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayRequest {
    /// One delivery.
    Delivery(DeliveryId),
    /// All that the endpoint subscribes to after this position, which is opaque here.
    After(String),
    /// All deliveries that have failed.
    Failed,
}

impl ReplayRequest {
    /// Reads a request from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            let given = ["deliveryId", "after", "failed"]
                .into_iter()
                .filter(|name| !object.take_absent(name))
                .collect::<Vec<_>>();
            match given[..] {
                [] => object.error(ONE_OF, "is required"),
                [_] => {}
                [_, second, ..] => {
                    object.error(
                        second,
                        format!("cannot be combined: give exactly one of {ONE_OF}"),
                    );
                }
            }
            let delivery = object.string("deliveryId");
            let delivery = delivery.map(|id| Self::Delivery(DeliveryId::new(id)));
            let after = object.string("after").map(Self::After);
            let failed = match object.take("failed") {
                Some(Value::Bool(true)) => Some(Self::Failed),
                Some(_) => {
                    object.error("failed", "must be true");
                    None
                }
                None => None,
            };
            object.finish();
            delivery.or(after).or(failed)
        });
        errors.settle(request)
    }
}

/// The endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook is disabled: PATCH it with {{\"status\": \"ENABLED\"}} first")]
pub struct Disabled;

fn enabled(endpoint: &Endpoint) -> Result<(), Disabled> {
    match endpoint.status {
        Status::Enabled => Ok(()),
        Status::Disabled => Err(Disabled),
    }
}

/// Requests a replay. It currently covers `replayed` deliveries, and the deliveries' log ends at
/// `attempts_through`.
pub fn replay(
    endpoint: &Endpoint,
    replay: Replay,
    replayed: u64,
    attempts_through: u64,
) -> Result<Event, Disabled> {
    enabled(endpoint)?;
    Ok(Event::WebhookReplayRequested(ReplayRequested {
        id: endpoint.id.clone(),
        replay,
        replayed,
        attempts_through,
    }))
}

/// Requests a test delivery to the endpoint.
pub fn test(endpoint: &Endpoint) -> Result<Event, Disabled> {
    enabled(endpoint)?;
    let id = endpoint.id.clone();
    Ok(Event::WebhookTestRequested(TestRequested { id }))
}

/// Gives the endpoint a new secret; the previous one also signs until `previous_until`.
pub fn rotate_secret(endpoint: &Endpoint, secret: Sealed, previous_until: DateTime<Utc>) -> Event {
    Event::WebhookSecretRotated(SecretRotated {
        id: endpoint.id.clone(),
        secret,
        previous_until,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exactly_one_thing_is_sent_again() {
        let read = |body| ReplayRequest::parse(body).unwrap();
        let delivery = ReplayRequest::Delivery("msg_1".into());
        assert_eq!(
            read(json!({"deliveryId": "msg_1", "after": null})),
            delivery
        );
        let after = ReplayRequest::After("e1-2".to_owned());
        assert_eq!(read(json!({"after": "e1-2"})), after);
        assert_eq!(read(json!({"failed": true})), ReplayRequest::Failed);
        for (body, field) in [
            (json!({}), ONE_OF),
            (json!({"failed": null}), ONE_OF),
            (json!({"deliveryId": "msg_1", "failed": true}), "failed"),
            (json!({"after": "e1-2", "deliveryId": "msg_1"}), "after"),
            (json!({"deliveryId": 1}), "deliveryId"),
            (json!({"after": {}}), "after"),
            (json!({"failed": false}), "failed"),
            (json!({"failed": "true"}), "failed"),
            (json!({"failed": true, "before": 1}), "before"),
            (json!([]), "body"),
        ] {
            let invalid = ReplayRequest::parse(body.clone()).unwrap_err();
            assert_eq!(invalid.errors()[0].field, field, "{body}");
        }
    }

    #[test]
    fn a_disabled_endpoint_says_how_to_go_on() {
        let endpoint = Endpoint {
            id: "h1".into(),
            url: "https://x.example/".to_owned(),
            events: Vec::new(),
            description: None,
            status: Status::Disabled,
        };
        assert_eq!(test(&endpoint), Err(Disabled));
        assert_eq!(replay(&endpoint, Replay::Failed, 1, 9), Err(Disabled));
        assert!(Disabled.to_string().contains(r#"{"status": "ENABLED"}"#));
        let secret = Sealed::from_ciphertext(String::new());
        let rotated = rotate_secret(&endpoint, secret, DateTime::UNIX_EPOCH);
        assert_eq!(rotated.name(), "webhook.secret_rotated");
        let enabled = Endpoint {
            status: Status::Enabled,
            ..endpoint
        };
        assert!(test(&enabled).is_ok());
    }
}
