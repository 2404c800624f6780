//! What is sent: one event as receivers get it, the same for every endpoint and attempt.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::{EventLog, Keyring};
use schemas::{Context, DeliveryId, EventId, Log, Recorded, WebhookId};
use serde::Serialize;
use serde_json::Value;

/// An event ready to be sent to any endpoint of its organization.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) event_id: EventId,
    pub(super) sequence: u64,
    pub(super) event_type: String,
    pub(super) time: DateTime<Utc>,
    pub(super) body: Bytes,
    /// What follows from the event: the attempts to deliver it.
    pub(super) context: Context,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    event_type: &'a str,
    timestamp: DateTime<Utc>,
    data: Value,
    position: String,
}

impl Parcel {
    /// Packs an event.
    pub(super) fn pack(log: &EventLog, recorded: &Recorded) -> Result<Self, serde_json::Error> {
        let event_type = recorded.event.name().into_owned();
        let body = serde_json::to_vec(&Body {
            event_type: &event_type,
            timestamp: recorded.time,
            data: recorded.event.public_data()?,
            position: log.position(Log::Events, recorded.sequence).to_string(),
        })?;
        Ok(Self {
            event_id: recorded.id,
            sequence: recorded.sequence,
            event_type,
            time: recorded.time,
            body: body.into(),
            context: Context::caused_by(recorded),
        })
    }
}

/// The delivery of an event to an endpoint: the same name over all attempts, restarts and
/// replays, so that a receiver can tell what it has had.
pub(super) fn delivery_id(keyring: &Keyring, webhook: &WebhookId, event: EventId) -> DeliveryId {
    let parts: [&[u8]; 2] = [webhook.as_str().as_bytes(), event.0.as_bytes()];
    DeliveryId::from(format!("msg_{}", keyring.keyed_hash("delivery", &parts)))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_delivery_has_one_name() {
        let keyring = Keyring::from_master(&[3; 32]);
        let (one, other) = (EventId(Uuid::from_u128(1)), EventId(Uuid::from_u128(2)));
        let name = |webhook: &str, event| delivery_id(&keyring, &webhook.into(), event);
        assert_eq!(name("h1", one), name("h1", one));
        assert_ne!(name("h1", one), name("h1", other));
        assert_ne!(name("h1", one), name("h2", one));
        assert!(name("h1", one).as_str().starts_with("msg_"));
    }
}
