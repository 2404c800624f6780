//! Records of a stream in a backup: messages and gaps, in order.

use async_nats::HeaderMap;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::read::Stored;

const MESSAGE: u8 = 1;
const GAP: u8 = 2;

/// Prefix of headers that the server adds or that are meant for it, not part of the message.
const SERVERS_OWN: &str = "Nats-";
const SERVER_TIME: &str = "Nats-Time-Stamp";

/// One message of a stream, or a range of empty sequences.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Message(Message),
    /// Sequences that were erased or have expired, according to the log.
    Gap {
        from: u64,
        to: u64,
    },
}

/// A message as it was in its stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) sequence: u64,
    /// When the server stored it.
    pub(super) time: String,
    /// Without what names the installation.
    pub(super) subject: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) payload: Bytes,
}

impl Record {
    pub(super) fn first(&self) -> u64 {
        match self {
            Self::Message(message) => message.sequence,
            Self::Gap { from, .. } => *from,
        }
    }

    pub(super) fn last(&self) -> u64 {
        match self {
            Self::Message(message) => message.sequence,
            Self::Gap { to, .. } => *to,
        }
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        match self {
            Self::Gap { from, to } => {
                bytes.put_u8(GAP);
                bytes.put_u64(*from);
                bytes.put_u64(*to);
            }
            Self::Message(message) => {
                bytes.put_u8(MESSAGE);
                bytes.put_u64(message.sequence);
                put_text(&mut bytes, &message.time);
                put_text(&mut bytes, &message.subject);
                put_length(&mut bytes, message.headers.len());
                for (name, value) in &message.headers {
                    put_text(&mut bytes, name);
                    put_text(&mut bytes, value);
                }
                bytes.put_slice(&message.payload);
            }
        }
        bytes.freeze()
    }

    /// Returns `None` for bytes that [`Record::encode`] has not written.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        match bytes.try_get_u8().ok()? {
            GAP => {
                let (from, to) = (bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
                (from <= to && bytes.is_empty()).then_some(Self::Gap { from, to })
            }
            MESSAGE => Message::decode(bytes).map(Self::Message),
            _ => None,
        }
    }
}

impl Message {
    /// A message of the server, with `subject` as its subject in the backup.
    pub(super) fn of(stored: Stored, subject: String) -> Self {
        let mut time = String::new();
        let mut headers = Vec::new();
        for (name, values) in stored.headers.iter() {
            let name = name.to_string();
            for value in values {
                if name == SERVER_TIME {
                    value.as_str().clone_into(&mut time);
                } else if !name.starts_with(SERVERS_OWN) {
                    headers.push((name.clone(), value.as_str().to_owned()));
                }
            }
        }
        // The map has no order of its own.
        headers.sort();
        Self {
            sequence: stored.sequence,
            time,
            subject,
            headers,
            payload: stored.payload,
        }
    }

    /// Its headers, for the server.
    pub(super) fn header_map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            map.append(name.as_str(), value.as_str());
        }
        map
    }

    /// Its approximate bytes on the wire.
    pub(super) fn size(&self) -> usize {
        let headers = self.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        self.subject.len() + headers + self.payload.len()
    }

    fn decode(mut bytes: Bytes) -> Option<Self> {
        let sequence = bytes.try_get_u64().ok()?;
        let time = take_text(&mut bytes)?;
        let subject = take_text(&mut bytes)?;
        let mut headers = Vec::new();
        for _ in 0..bytes.try_get_u32().ok()? {
            headers.push((take_text(&mut bytes)?, take_text(&mut bytes)?));
        }
        Some(Self {
            sequence,
            time,
            subject,
            headers,
            payload: bytes,
        })
    }
}

fn put_length(bytes: &mut BytesMut, length: usize) {
    // The server limits a message far below that.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

fn put_text(bytes: &mut BytesMut, text: &str) {
    put_length(bytes, text.len());
    bytes.put_slice(text.as_bytes());
}

fn take_text(bytes: &mut Bytes) -> Option<String> {
    let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    if length > bytes.len() {
        return None;
    }
    String::from_utf8(bytes.split_to(length).to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn message()(
            sequence: u64,
            time in ".{0,30}",
            subject in ".{0,30}",
            headers in prop::collection::vec((".{0,9}", ".{0,9}"), 0..5),
            payload: Vec<u8>,
        ) -> Message {
            Message { sequence, time, subject, headers, payload: payload.into() }
        }
    }

    proptest! {
        #[test]
        fn a_record_survives_its_bytes(message in message(), from: u32, more: u32) {
            let record = Record::Message(message);
            prop_assert_eq!(Record::decode(record.encode()), Some(record));
            let gap = Record::Gap { from: from.into(), to: u64::from(from) + u64::from(more) };
            prop_assert_eq!(Record::decode(gap.encode()), Some(gap));
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes: Vec<u8>) {
            let _ = Record::decode(bytes.into());
        }
    }
}
