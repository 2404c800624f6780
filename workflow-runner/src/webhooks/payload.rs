//! Payloads: one event as receivers get it, the same for every endpoint and attempt.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::EventLog;
use schemas::{Cause, Context, Event, EventId, Recorded};
use serde::Serialize;
use serde_json::Value;

/// The event type under which a test request is sent, only to the endpoint that it names.
pub(super) const TEST: &str = "webhook.test";

/// An event ready to be sent to any endpoint of its organization.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) event_id: EventId,
    pub(super) sequence: u64,
    pub(super) event_type: String,
    pub(super) time: DateTime<Utc>,
    pub(super) body: Bytes,
    /// Context of what follows from the event: the attempts to deliver it.
    pub(super) context: Context,
    /// The origin of the event.
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

impl Payload {
    /// Encodes an event without personal data, for caching.
    pub(super) fn plain(log: &EventLog, recorded: &Recorded) -> Option<Arc<Self>> {
        if recorded.event.personal().is_some() {
            // Personal data is unsealed only when it is sent.
            return None;
        }
        let data = recorded.event.public_data();
        // The attempt runs into the same error, and reports it.
        data.and_then(|data| Self::encode(log, recorded, data))
            .ok()
            .map(Arc::new)
    }

    /// Encodes an event with the data that may be shown.
    pub(super) fn encode(
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
        self.body.len() + OVERHEAD_BYTES
    }
}

/// Bytes that are encoded at once; the rest is read again later.
pub(super) const ENCODED_BYTES: usize = 1024 * 1024;
/// Approximate number of bytes of cached bodies.
const CACHE_BYTES: usize = 16 * 1024 * 1024;
/// Overhead of a payload besides its body.
const OVERHEAD_BYTES: usize = 512;

/// Cache of the newest payloads, so that an event that waits only briefly need not be read from the
/// log again.
#[derive(Debug, Default)]
pub(super) struct PayloadCache {
    payloads: HashMap<u64, Arc<Payload>>,
    order: VecDeque<u64>,
    bytes: usize,
    /// Events up to this sequence are not cached: some of them may have been erased.
    forgotten_through: u64,
}

impl PayloadCache {
    /// Adds a payload, and evicts the oldest beyond the limit.
    pub(super) fn put(&mut self, payload: Arc<Payload>) {
        let (sequence, bytes) = (payload.sequence, payload.bytes());
        if sequence <= self.forgotten_through {
            return;
        }
        if self.payloads.insert(sequence, payload).is_some() {
            return;
        }
        self.order.push_back(sequence);
        self.bytes += bytes;
        while self.bytes > CACHE_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(oldest) = self.payloads.remove(&oldest) {
                self.bytes -= oldest.bytes();
            }
        }
    }

    /// Drops the payloads of all events up to a sequence, and takes none of them again: those that
    /// are still in the log are read from there.
    pub(super) fn forget_through(&mut self, sequence: u64) {
        self.forgotten_through = self.forgotten_through.max(sequence);
        let through = self.forgotten_through;
        self.order.retain(|cached| *cached > through);
        let forgotten = self.payloads.extract_if(|cached, _| *cached <= through);
        self.bytes -= forgotten.map(|(_, payload)| payload.bytes()).sum::<usize>();
    }

    /// The event's payload, if it is still cached.
    pub(super) fn get(&self, sequence: u64) -> Option<Arc<Payload>> {
        self.payloads.get(&sequence).cloned()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn payload(sequence: u64, bytes: usize) -> Arc<Payload> {
        Arc::new(Payload {
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
    fn the_cache_holds_the_newest_within_its_bounds() {
        let mut payload_cache = PayloadCache::default();
        for sequence in 1..=10 {
            payload_cache.put(payload(sequence, CACHE_BYTES / 4));
            payload_cache.put(payload(sequence, CACHE_BYTES / 4));
        }
        let held = (1..=10).filter(|sequence| payload_cache.get(*sequence).is_some());
        assert_eq!(held.collect::<Vec<_>>(), [8, 9, 10]);
        payload_cache.put(payload(11, 2 * CACHE_BYTES));
        assert!(payload_cache.payloads.is_empty() && payload_cache.order.is_empty());
        assert_eq!(payload_cache.bytes, 0);
    }

    #[test]
    fn what_may_be_erased_is_cached_no_more() {
        let mut payload_cache = PayloadCache::default();
        (1..=4).for_each(|sequence| payload_cache.put(payload(sequence, 100)));
        payload_cache.forget_through(3);
        // Read from the log before it was erased, and reported only now.
        payload_cache.put(payload(2, 100));
        let held = (1..=4).filter(|sequence| payload_cache.get(*sequence).is_some());
        assert_eq!(held.collect::<Vec<_>>(), [4]);
        assert_eq!(payload_cache.bytes, payload(4, 100).bytes());
        payload_cache.put(payload(5, 100));
        payload_cache.forget_through(1);
        assert!(payload_cache.get(4).is_some() && payload_cache.get(5).is_some());
    }
}
