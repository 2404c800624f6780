//! Events on the wire: CloudEvents 1.0 in binary mode, attributes in `ce-…` headers and the data
//! as the body. What is the same for every event (`specversion`, `source`, the content's type) is
//! left out: headers are the larger part of an event, and of what it costs to carry.

use std::borrow::Cow;
use std::str::FromStr as _;

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use schemas::{
    Actor, Cause, Context, Event, EventId, NewEvent, OrgId, Receipt, Recorded, StreamId,
    Traceparent,
};
use uuid::Uuid;

use crate::subject::kind_of;

const ID: HeaderName = HeaderName::from_static("ce-id");
const TYPE: HeaderName = HeaderName::from_static("ce-type");
const TIME: HeaderName = HeaderName::from_static("ce-time");
const SUBJECT: HeaderName = HeaderName::from_static("ce-subject");
const ORG: HeaderName = HeaderName::from_static("ce-orgid");
const CORRELATION: HeaderName = HeaderName::from_static("ce-correlationid");
const CAUSATION: HeaderName = HeaderName::from_static("ce-causationid");
const TRACEPARENT: HeaderName = HeaderName::from_static("ce-traceparent");
const HOPS: HeaderName = HeaderName::from_static("ce-hops");
const CAUSE: HeaderName = HeaderName::from_static("ce-causeid");
const ACTOR: HeaderName = HeaderName::from_static("ce-actor");
const CAUSED_RUNS: HeaderName = HeaderName::from_static("ce-causedruns");
const RECEIPT_KEY: HeaderName = HeaderName::from_static("waypost-receipt");
const RECEIPT_FINGERPRINT: HeaderName = HeaderName::from_static("waypost-receipt-fingerprint");

/// An event ready for the wire.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
    /// Bytes that count against the server's limits.
    pub(crate) size: usize,
}

pub(crate) fn encode(stream: &StreamId, new: &NewEvent) -> Result<Encoded, serde_json::Error> {
    let payload = Bytes::from(new.event.encode()?);
    let (mut headers, mut size) = (HeaderMap::new(), payload.len() + "NATS/1.0\r\n\r\n".len());
    let mut add = |name: HeaderName, value: Cow<'_, str>| {
        size += AsRef::<str>::as_ref(&name).len() + value.len() + ": \r\n".len();
        headers.insert(name, value.into_owned());
    };
    add(ID, new.id.to_string().into());
    add(TYPE, header_text(&new.event.recorded_type()));
    add(TIME, time_text(new.time).into());
    add(SUBJECT, header_text(&stream.to_string()));
    add(ORG, header_text(stream.org.as_str()));
    if let Some(correlation) = &new.context.correlation_id {
        add(CORRELATION, header_text(correlation));
    }
    if let Some(causation) = &new.context.causation_id {
        add(CAUSATION, header_text(causation));
    }
    if let Some(traceparent) = &new.context.traceparent {
        add(TRACEPARENT, traceparent.as_str().into());
    }
    if new.context.hops > 0 {
        add(HOPS, new.context.hops.to_string().into());
    }
    if let Some(cause) = &new.context.cause {
        add(CAUSE, cause.id.to_string().into());
        add(CAUSED_RUNS, cause.runs.to_string().into());
    }
    if let Some(actor) = &new.context.actor {
        add(ACTOR, header_text(&actor.to_string()));
    }
    if let Some(receipt) = &new.receipt {
        add(RECEIPT_KEY, header_text(&receipt.key));
        add(RECEIPT_FINGERPRINT, header_text(&receipt.fingerprint));
    }
    Ok(Encoded {
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
    let text = |name: HeaderName| headers.get(name).map(HeaderValue::as_str);
    let need = |name: HeaderName| {
        let value = headers.get(name.clone()).map(HeaderValue::as_str);
        value.ok_or_else(|| format!("header {name} is missing"))
    };
    let aggregate = kind_of(subject).ok_or_else(|| format!("unknown subject {subject}"))?;
    let named = need(SUBJECT)?;
    let (_, id) = named
        .split_once('/')
        .ok_or_else(|| format!("{SUBJECT} is {named}"))?;
    let time = DateTime::parse_from_rfc3339(need(TIME)?).map_err(|e| format!("{TIME}: {e}"))?;
    let event_type = unescaped(need(TYPE)?);
    Ok(Recorded {
        sequence,
        stream: StreamId {
            org: OrgId::from(plain_text(need(ORG)?)),
            aggregate,
            id: plain_text(id),
        },
        id: event_id(headers).ok_or_else(|| format!("{ID} is not an event id"))?,
        time: time.with_timezone(&Utc),
        event: Event::decode(&event_type, payload).map_err(|e| e.to_string())?,
        context: Context {
            correlation_id: text(CORRELATION).map(plain_text),
            causation_id: text(CAUSATION).map(plain_text),
            traceparent: text(TRACEPARENT).and_then(Traceparent::parse),
            hops: text(HOPS).and_then(|hops| hops.parse().ok()).unwrap_or(0),
            cause: text(CAUSE).and_then(|id| {
                let id = Uuid::from_str(id).ok()?;
                let runs = text(CAUSED_RUNS).and_then(|runs| runs.parse().ok());
                let runs = runs.unwrap_or_default();
                Some(Cause { id, runs })
            }),
            actor: text(ACTOR).and_then(|actor| Actor::parse(&plain_text(actor))),
        },
        receipt: text(RECEIPT_KEY)
            .zip(text(RECEIPT_FINGERPRINT))
            .map(|(key, fingerprint)| Receipt {
                key: plain_text(key),
                fingerprint: plain_text(fingerprint),
            }),
    })
}

/// The id of the event in a message, without reading the rest.
pub(crate) fn event_id(headers: &HeaderMap) -> Option<EventId> {
    Uuid::from_str(headers.get(ID)?.as_str()).ok().map(EventId)
}

fn time_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// CloudEvents' header encoding: every character that is not printable ASCII, and `"` and `%`, is
/// percent-encoded UTF-8 (HTTP protocol binding, section 3.1.3.2). A space is encoded as well,
/// since NATS trims header values.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

fn header_text(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, ENCODED).into()
}

fn plain_text(text: &str) -> String {
    unescaped(text).into_owned()
}

fn unescaped(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
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
