//! What is sent: one event as receivers get it, the same for every endpoint and attempt.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::EventLog;
use schemas::{Cause, Context, Event, EventId, Recorded};
use serde::Serialize;
use serde_json::Value;

/// The type under which the request for a test is sent, to the endpoint that it names alone.
pub(super) const TEST: &str = "webhook.test";

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
    /// What the event goes back to.
    pub(super) cause: Cause,
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
    /// Packs an event in which nothing is personal, to be kept at hand.
    pub(super) fn plain(log: &EventLog, recorded: &Recorded) -> Option<Arc<Self>> {
        if recorded.event.personal().is_some() {
            // What is personal is unsealed only when it is sent.
            return None;
        }
        let data = recorded.event.public_data();
        // The attempt finds the same fault, and says so.
        data.and_then(|data| Self::pack(log, recorded, data))
            .ok()
            .map(Arc::new)
    }

    /// Packs an event with the data that is shown of it.
    pub(super) fn pack(
        log: &EventLog,
        recorded: &Recorded,
        data: Value,
    ) -> Result<Self, serde_json::Error> {
        let event_type = match &recorded.event {
            Event::WebhookTestRequested(_) => TEST.to_owned(),
            event => event.name().into_owned(),
        };
        let of = recorded.stream.aggregate.log();
        let body = serde_json::to_vec(&Body {
            event_type: &event_type,
            timestamp: recorded.time,
            data,
            position: log.position(of, recorded.sequence).to_string(),
        })?;
        Ok(Self {
            event_id: recorded.id,
            sequence: recorded.sequence,
            event_type,
            time: recorded.time,
            body: body.into(),
            context: Context::caused_by(recorded),
            cause: Cause::of(recorded).unwrap_or(Cause::new(recorded.id.0)),
        })
    }

    fn bytes(&self) -> usize {
        self.body.len() + PARCEL_BYTES
    }
}

/// Bytes that are packed at once; the rest is read again when its turn comes.
pub(super) const PACKED_BYTES: usize = 1024 * 1024;
/// Bytes of bodies that are kept at hand, about.
const SHELF_BYTES: usize = 16 * 1024 * 1024;
/// What a parcel costs beside its body.
const PARCEL_BYTES: usize = 512;

/// The newest parcels, so that what waits only for a moment need not be read from the log again.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    parcels: HashMap<u64, Arc<Parcel>>,
    order: VecDeque<u64>,
    bytes: usize,
}

impl Shelf {
    /// Puts a parcel on the shelf, and takes the oldest down beyond its bounds.
    pub(super) fn put(&mut self, parcel: Arc<Parcel>) {
        let (sequence, bytes) = (parcel.sequence, parcel.bytes());
        if self.parcels.insert(sequence, parcel).is_some() {
            return;
        }
        self.order.push_back(sequence);
        self.bytes += bytes;
        while self.bytes > SHELF_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(oldest) = self.parcels.remove(&oldest) {
                self.bytes -= oldest.bytes();
            }
        }
    }

    /// The event's parcel, where it is still at hand.
    pub(super) fn get(&self, sequence: u64) -> Option<Arc<Parcel>> {
        self.parcels.get(&sequence).cloned()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn parcel(sequence: u64, bytes: usize) -> Arc<Parcel> {
        Arc::new(Parcel {
            event_id: EventId(Uuid::from_u128(sequence.into())),
            sequence,
            event_type: "run.started".to_owned(),
            time: DateTime::UNIX_EPOCH,
            body: vec![0; bytes].into(),
            context: Context::default(),
            cause: Cause::new(Uuid::from_u128(sequence.into())),
        })
    }

    #[test]
    fn the_shelf_holds_the_newest_within_its_bounds() {
        let mut shelf = Shelf::default();
        for sequence in 1..=10 {
            shelf.put(parcel(sequence, SHELF_BYTES / 4));
            shelf.put(parcel(sequence, SHELF_BYTES / 4));
        }
        let held = (1..=10).filter(|sequence| shelf.get(*sequence).is_some());
        assert_eq!(held.collect::<Vec<_>>(), [8, 9, 10]);
        shelf.put(parcel(11, 2 * SHELF_BYTES));
        assert!(shelf.parcels.is_empty() && shelf.order.is_empty());
        assert_eq!(shelf.bytes, 0);
    }
}
