//! One event in the feed's format.

use chrono::{DateTime, Utc};
use event_log::{EventLog, VaultError};
use schemas::{EventId, Recorded};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'e> {
    position: String,
    id: EventId,
    #[serde(rename = "type")]
    event_type: &'e str,
    version: u16,
    time: DateTime<Utc>,
    subject: String,
    correlation_id: Option<&'e str>,
    causation_id: Option<&'e str>,
    data: Value,
}

/// A public event as one JSON object, without the newline after it:
/// `{position, id, type, version, time, subject, correlationId, causationId, data}`.
///
/// # Errors
/// If its personal data cannot currently be unsealed.
pub(super) async fn line(log: &EventLog, recorded: &Recorded) -> Result<Vec<u8>, VaultError> {
    let event = &recorded.event;
    let position = log.position(recorded.stream.aggregate.log(), recorded.sequence);
    let line = Line {
        position: position.to_string(),
        id: recorded.id,
        event_type: &event.name(),
        version: event.version(),
        time: recorded.time,
        subject: recorded.stream.to_string(),
        correlation_id: recorded.context.correlation_id.as_deref(),
        causation_id: recorded.context.causation_id.as_deref(),
        data: log.reveal(event).await?,
    };
    serde_json::to_vec(&line).map_err(|_| VaultError::Broken)
}
