//! Events on the wire: CloudEvents 1.0 in binary mode, attributes in `ce-…` headers and the data
//! as the body.

use std::str::FromStr as _;

use async_nats::HeaderMap;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use schemas::{Context, Event, EventId, NewEvent, OrgId, Receipt, Recorded, StreamId, Traceparent};
use uuid::Uuid;

use crate::subject::kind_of;

const ID: &str = "ce-id";
const TYPE: &str = "ce-type";
const TIME: &str = "ce-time";
const SUBJECT: &str = "ce-subject";
const ORG: &str = "ce-orgid";
const CORRELATION: &str = "ce-correlationid";
const CAUSATION: &str = "ce-causationid";
const TRACEPARENT: &str = "ce-traceparent";
const RECEIPT_KEY: &str = "waypost-receipt";
const RECEIPT_FINGERPRINT: &str = "waypost-receipt-fingerprint";

/// An event ready for the wire.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) id: EventId,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
    /// Bytes that count against the server's limits.
    pub(crate) size: usize,
}

pub(crate) fn encode(stream: &StreamId, new: &NewEvent) -> Result<Encoded, serde_json::Error> {
    let payload = Bytes::from(new.event.encode()?);
    let mut headers = HeaderMap::new();
    headers.insert("ce-specversion", "1.0");
    headers.insert("ce-source", "/waypost");
    headers.insert(ID, new.id.to_string());
    headers.insert(TYPE, new.event.recorded_type());
    headers.insert(TIME, new.time.to_rfc3339_opts(SecondsFormat::Micros, true));
    headers.insert(SUBJECT, header_text(&stream.to_string()));
    headers.insert(ORG, stream.org.as_str());
    headers.insert("content-type", "application/json");
    if let Some(correlation) = &new.context.correlation_id {
        headers.insert(CORRELATION, header_text(correlation));
    }
    if let Some(causation) = &new.context.causation_id {
        headers.insert(CAUSATION, header_text(causation));
    }
    if let Some(traceparent) = &new.context.traceparent {
        headers.insert(TRACEPARENT, traceparent.as_str());
    }
    if let Some(receipt) = &new.receipt {
        headers.insert(RECEIPT_KEY, receipt.key.as_str());
        headers.insert(RECEIPT_FINGERPRINT, receipt.fingerprint.as_str());
    }
    let header_bytes: usize = headers
        .iter()
        .map(|(name, values)| {
            AsRef::<str>::as_ref(name).len()
                + values.iter().map(|v| v.as_str().len() + 4).sum::<usize>()
        })
        .sum();
    let size = payload.len() + header_bytes;
    Ok(Encoded {
        id: new.id,
        headers,
        payload,
        size,
    })
}

/// Reads an event as it came from the log.
pub(crate) fn decode(
    subject: &str,
    sequence: u64,
    headers: &HeaderMap,
    payload: &[u8],
) -> Result<Recorded, String> {
    let text = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
    let need = |name: &'static str| text(name).ok_or_else(|| format!("header {name} is missing"));
    let aggregate = kind_of(subject).ok_or_else(|| format!("unknown subject {subject}"))?;
    let named = need(SUBJECT)?;
    let (_, id) = named
        .split_once('/')
        .ok_or_else(|| format!("{SUBJECT} is {named}"))?;
    let time = DateTime::parse_from_rfc3339(need(TIME)?).map_err(|e| format!("{TIME}: {e}"))?;
    Ok(Recorded {
        sequence,
        stream: StreamId {
            org: OrgId::from(need(ORG)?),
            aggregate,
            id: plain_text(id),
        },
        id: EventId(Uuid::from_str(need(ID)?).map_err(|e| format!("{ID}: {e}"))?),
        time: time.with_timezone(&Utc),
        event: Event::decode(need(TYPE)?, payload).map_err(|e| e.to_string())?,
        context: Context {
            correlation_id: text(CORRELATION).map(plain_text),
            causation_id: text(CAUSATION).map(plain_text),
            traceparent: text(TRACEPARENT).and_then(Traceparent::parse),
        },
        receipt: text(RECEIPT_KEY)
            .zip(text(RECEIPT_FINGERPRINT))
            .map(|(key, fingerprint)| Receipt {
                key: key.to_owned(),
                fingerprint: fingerprint.to_owned(),
            }),
    })
}

/// The id of the event in a message, without reading the rest.
pub(crate) fn event_id(headers: &HeaderMap) -> Option<EventId> {
    Uuid::from_str(headers.get(ID)?.as_str()).ok().map(EventId)
}

/// CloudEvents' header encoding: whatever is not printable ASCII, and `"` and `%`, stands as
/// percent-encoded UTF-8 (HTTP protocol binding, section 3.1.3.2). A space is encoded as well,
/// since NATS trims header values.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

fn header_text(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn plain_text(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_survives_a_header(text in ".*") {
            let encoded = header_text(&text);
            prop_assert!(encoded.bytes().all(|b| b.is_ascii_graphic()));
            prop_assert_eq!(plain_text(&encoded), text);
        }
    }
}
