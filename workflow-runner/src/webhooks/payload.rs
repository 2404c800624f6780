//! Payloads: one event as receivers get it, the same for every endpoint and attempt.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::EventLog;
use schemas::{Cause, Context, Event, EventId, Recorded, StreamId};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::erasure;

/// The event type under which a test request is sent, only to the endpoint that it names.
pub(super) const TEST: &str = "webhook.test";

/// An event ready to be sent to any endpoint of its organization.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) event_id: EventId,
    pub(super) sequence: u64,
    /// The event's aggregate.
    pub(super) stream: StreamId,
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
            stream: recorded.stream.clone(),
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
/// Aggregates whose erasing has been announced that are known at the same time.
const ERASABLE: usize = 10_000;

/// Cache of the newest payloads, so that an event that waits only briefly need not be read from the
/// log again.
#[derive(Debug, Default)]
pub(super) struct PayloadCache {
    payloads: HashMap<u64, Cached>,
    order: VecDeque<u64>,
    bytes: usize,
    /// Aggregates whose events before a sequence may be erased.
    erasable: HashMap<StreamId, u64>,
}

#[derive(Debug)]
struct Cached {
    payload: Arc<Payload>,
    since: Instant,
}

impl PayloadCache {
    /// Adds a payload, and evicts the oldest beyond the limit.
    pub(super) fn put(&mut self, payload: Arc<Payload>, now: Instant) {
        let (sequence, bytes) = (payload.sequence, payload.bytes());
        if self.is_erasable(&payload) {
            return;
        }
        let cached = Cached {
            payload,
            since: now,
        };
        if self.payloads.insert(sequence, cached).is_some() {
            return;
        }
        self.order.push_back(sequence);
        self.bytes += bytes;
        while self.bytes > CACHE_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(oldest) = self.payloads.remove(&oldest) {
                self.bytes -= oldest.payload.bytes();
            }
        }
    }

    /// Returns none of an aggregate's payloads from before a sequence any more, and takes none of
    /// them again: a task may have read them before they were erased. While they are still in the
    /// log, they are read from there.
    pub(super) fn forget_before(&mut self, sequence: u64, aggregate: &StreamId) {
        if self.erasable.len() >= ERASABLE {
            // What tasks have read of these aggregates can be put here again, for a limited time.
            *self = Self::default();
        }
        let known = self.erasable.entry(aggregate.clone()).or_default();
        *known = sequence.max(*known);
    }

    /// The event's payload, if it is still cached and may be sent from memory.
    pub(super) fn get(&self, sequence: u64, now: Instant) -> Option<Arc<Payload>> {
        let cached = self.payloads.get(&sequence)?;
        let is_old = now.duration_since(cached.since) >= erasure::SHOWN_FOR;
        let may_be_sent = !is_old && !self.is_erasable(&cached.payload);
        may_be_sent.then(|| cached.payload.clone())
    }

    fn is_erasable(&self, payload: &Payload) -> bool {
        let before = self.erasable.get(&payload.stream);
        before.is_some_and(|before| payload.sequence < *before)
    }
}

#[cfg(test)]
mod tests {
    use schemas::{AggregateType, OrgId};
    use uuid::Uuid;

    use super::*;

    fn run(id: &str) -> StreamId {
        StreamId::new(&OrgId::from("o"), AggregateType::Run, id)
    }

    fn payload(sequence: u64, bytes: usize) -> Arc<Payload> {
        payload_of(&run("r"), sequence, bytes)
    }

    fn payload_of(stream: &StreamId, sequence: u64, bytes: usize) -> Arc<Payload> {
        Arc::new(Payload {
            event_id: EventId(Uuid::from_u128(sequence.into())),
            sequence,
            stream: stream.clone(),
            event_type: "run.started".to_owned(),
            time: DateTime::UNIX_EPOCH,
            body: vec![0; bytes].into(),
            context: Context::default(),
            cause: Cause::new(Uuid::from_u128(sequence.into())),
        })
    }

    fn held(payload_cache: &PayloadCache, now: Instant) -> Vec<u64> {
        let held = (1..=10).filter(|sequence| payload_cache.get(*sequence, now).is_some());
        held.collect()
    }

    #[test]
    fn the_cache_holds_the_newest_within_its_bounds() {
        let (mut payload_cache, now) = (PayloadCache::default(), Instant::now());
        for sequence in 1..=10 {
            payload_cache.put(payload(sequence, CACHE_BYTES / 4), now);
            payload_cache.put(payload(sequence, CACHE_BYTES / 4), now);
        }
        assert_eq!(held(&payload_cache, now), [8, 9, 10]);
        payload_cache.put(payload(11, 2 * CACHE_BYTES), now);
        assert!(payload_cache.payloads.is_empty() && payload_cache.order.is_empty());
        assert_eq!(payload_cache.bytes, 0);
    }

    #[test]
    fn what_may_be_erased_is_neither_sent_from_memory_nor_cached_again() {
        let (mut payload_cache, now) = (PayloadCache::default(), Instant::now());
        let (gone, other) = (run("gone"), run("other"));
        payload_cache.put(payload_of(&gone, 1, 100), now);
        payload_cache.put(payload_of(&other, 2, 100), now);
        payload_cache.forget_before(4, &gone);
        // Read from the log before it was erased, and reported only now.
        payload_cache.put(payload_of(&gone, 3, 100), now);
        assert_eq!(held(&payload_cache, now), [2]);
        // What announces it, and what follows.
        payload_cache.put(payload_of(&gone, 4, 100), now);
        payload_cache.put(payload_of(&gone, 5, 100), now);
        payload_cache.forget_before(1, &gone);
        assert_eq!(held(&payload_cache, now), [2, 4, 5]);
    }

    #[test]
    fn a_payload_is_sent_from_memory_for_a_limited_time() {
        let (mut payload_cache, began) = (PayloadCache::default(), Instant::now());
        let later = began + erasure::SHOWN_FOR;
        payload_cache.put(payload(1, 100), began);
        payload_cache.put(payload(2, 100), began);
        assert_eq!(held(&payload_cache, began), [1, 2]);
        // Read from the log again.
        payload_cache.put(payload(2, 100), later);
        assert_eq!(held(&payload_cache, later), [2]);
    }

    #[test]
    fn few_aggregates_are_remembered_and_none_of_their_payloads_is_sent() {
        let (mut payload_cache, now) = (PayloadCache::default(), Instant::now());
        payload_cache.put(payload_of(&run("0"), 1, 100), now);
        for nth in 0..=ERASABLE {
            payload_cache.forget_before(2, &run(&nth.to_string()));
        }
        assert_eq!(payload_cache.erasable.len(), 1);
        assert!(held(&payload_cache, now).is_empty());
    }
}
