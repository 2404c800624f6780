//! The latest public events of one organization, shared by all of its sockets.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::circles::Disclosure;
use event_log::Position;
use schemas::{AggregateType, Recorded, StreamId};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::channel::Channel;
use crate::erasure;

/// An event as sockets show it, encoded once however many are listening.
#[derive(Debug)]
pub(super) struct LiveEvent {
    sequence: u64,
    kind: AggregateType,
    /// Its aggregate's id.
    aggregate: Box<str>,
    /// What it discloses about a person.
    disclosure: Option<Disclosure>,
    /// The frame from `,"position"` on; what precedes it differs by subscription.
    rest: Box<str>,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    time: DateTime<Utc>,
    data: Value,
}

impl LiveEvent {
    /// Encodes an event with the data that is shown of it.
    pub(super) fn encode(
        recorded: &Recorded,
        position: Position,
        data: Value,
    ) -> Result<Self, serde_json::Error> {
        let shown = serde_json::to_string(&Shown {
            name: &recorded.event.name(),
            time: recorded.time,
            data,
        })?;
        Ok(Self {
            sequence: recorded.sequence,
            kind: recorded.stream.aggregate,
            aggregate: recorded.stream.id.as_str().into(),
            disclosure: Disclosure::of(&recorded.event),
            rest: format!(r#","position":"{position}","event":{shown}}}"#).into(),
        })
    }

    /// Its sequence in its stream of the log.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// What it discloses about a person, if it does.
    pub(super) fn disclosure(&self) -> Option<&Disclosure> {
        self.disclosure.as_ref()
    }

    /// The whole frame for a subscription whose first part is `head`.
    pub(super) fn frame(&self, head: &str) -> String {
        let mut frame = String::with_capacity(head.len() + self.rest.len());
        frame.push_str(head);
        frame.push_str(&self.rest);
        frame
    }

    /// Whether it is of an aggregate of its organization.
    fn is_of(&self, aggregate: &StreamId) -> bool {
        self.kind == aggregate.aggregate && *self.aggregate == *aggregate.id
    }

    fn bytes(&self) -> usize {
        self.rest.len() + self.aggregate.len() + size_of::<Self>()
    }

    #[cfg(test)]
    pub(super) fn bare(sequence: u64, kind: AggregateType) -> Self {
        Self {
            sequence,
            kind,
            aggregate: sequence.to_string().into(),
            disclosure: None,
            rest: "x".repeat(100).into(),
        }
    }
}

/// What a reader finds after its position.
#[derive(Debug)]
pub(super) enum Found {
    /// Events, and the sequence up to which this is all, from which to continue.
    Events(Vec<Arc<LiveEvent>>, u64),
    /// What follows its position is no longer here: the log has it.
    Gone,
}

/// The newest events, within bounds of bytes and number.
#[derive(Debug)]
pub(super) struct Ring {
    /// Everything of the organization after this sequence is here.
    base: u64,
    bytes: usize,
    events: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    event: Arc<LiveEvent>,
    since: Instant,
}

/// Events that a ring holds at most.
const MAX_EVENTS: usize = 4_096;
/// About how many bytes are read at a time; always at least one event.
const READ_BYTES: usize = 128 * 1024;

impl Ring {
    /// Creates a ring for what follows `base`.
    pub(super) fn new(base: u64) -> Self {
        Self {
            base,
            bytes: 0,
            events: VecDeque::new(),
        }
    }

    /// Adds the newest event and drops the oldest beyond `max_bytes`; the newest always stays.
    pub(super) fn push(&mut self, event: LiveEvent, max_bytes: usize, now: Instant) {
        self.bytes += event.bytes();
        let event = Arc::new(event);
        self.events.push_back(Kept { event, since: now });
        while self.events.len() > 1 && (self.bytes > max_bytes || self.events.len() > MAX_EVENTS) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(Kept { event, .. }) = self.events.pop_front() {
            self.bytes -= event.bytes();
            self.base = event.sequence;
        }
    }

    /// Drops the events of an aggregate of the organization, which may be erased, and all before
    /// them: a reader that is not past them finds in the log what is left.
    pub(super) fn forget(&mut self, aggregate: &StreamId) {
        let mut events = self.events.iter();
        let last = events.rposition(|kept| kept.event.is_of(aggregate));
        for _ in 0..last.map_or(0, |last| last + 1) {
            self.drop_oldest();
        }
    }

    /// Drops all events: those up to `through` must be read from the log again.
    pub(super) fn clear(&mut self, through: u64) {
        *self = Self::new(through);
    }

    /// Up to `max` of the channel's events after the sequence `after`, unless these are too old to
    /// be shown from memory.
    pub(super) fn read(&self, after: u64, channel: Channel, max: usize, now: Instant) -> Found {
        let is_known = |kept: &Kept| kept.event.sequence <= after;
        let start = self.events.partition_point(is_known);
        let is_old = |next: &Kept| now.duration_since(next.since) >= erasure::SHOWN_FOR;
        if after < self.base || self.events.get(start).is_some_and(is_old) {
            return Found::Gone;
        }
        let mut through = after;
        let mut found = Vec::new();
        let mut bytes = 0;
        for Kept { event, .. } in self.events.range(start..) {
            if found.len() == max || bytes >= READ_BYTES {
                break;
            }
            through = event.sequence;
            if channel.carries(event.kind) {
                bytes += event.bytes();
                found.push(event.clone());
            }
        }
        Found::Events(found, through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u64, kind: AggregateType) -> LiveEvent {
        LiveEvent::bare(sequence, kind)
    }

    fn ring(events: impl IntoIterator<Item = (u64, AggregateType)>) -> Ring {
        let mut ring = Ring::new(10);
        for (sequence, kind) in events {
            ring.push(event(sequence, kind), usize::MAX, Instant::now());
        }
        ring
    }

    fn read(ring: &Ring, after: u64, channel: Channel, max: usize) -> Option<(Vec<u64>, u64)> {
        match ring.read(after, channel, max, Instant::now()) {
            Found::Events(events, through) => {
                Some((events.iter().map(|event| event.sequence).collect(), through))
            }
            Found::Gone => None,
        }
    }

    use AggregateType::{Contact, Run};

    #[test]
    fn a_reader_gets_its_channel_and_passes_the_rest() {
        let ring = ring([(11, Run), (13, Contact), (14, Run), (20, Contact)]);
        assert_eq!(read(&ring, 10, Channel::Runs, 9), Some((vec![11, 14], 20)));
        assert_eq!(
            read(&ring, 11, Channel::Events, 9),
            Some((vec![13, 14, 20], 20))
        );
        assert_eq!(
            read(&ring, 10, Channel::Events, 2),
            Some((vec![11, 13], 13))
        );
        assert_eq!(read(&ring, 20, Channel::Events, 9), Some((vec![], 20)));
    }

    #[test]
    fn a_place_ahead_of_the_ring_stays_where_it_is() {
        let ring = ring([(11, Run)]);
        assert_eq!(read(&ring, 99, Channel::Runs, 9), Some((vec![], 99)));
    }

    #[test]
    fn a_place_before_the_ring_is_for_the_log() {
        let mut ring = ring([]);
        assert_eq!(read(&ring, 9, Channel::Runs, 9), None);
        let size = event(20, Run).bytes();
        for sequence in 11..=20 {
            ring.push(event(sequence, Run), 3 * size, Instant::now());
        }
        assert_eq!(read(&ring, 16, Channel::Runs, 9), None);
        assert_eq!(
            read(&ring, 17, Channel::Runs, 9),
            Some((vec![18, 19, 20], 20))
        );
    }

    #[test]
    fn one_large_event_is_kept_whatever_the_bound() {
        let mut ring = ring([]);
        ring.push(event(11, Run), 1, Instant::now());
        ring.push(event(12, Run), 1, Instant::now());
        assert_eq!(read(&ring, 11, Channel::Runs, 9), Some((vec![12], 12)));
    }

    #[test]
    fn what_may_be_erased_is_for_the_log_and_keeps_nobody_who_is_past_it() {
        let mut ring = ring([(11, Run), (13, Contact), (14, Run)]);
        let of = |kind, id: &str| StreamId::new(&"o".into(), kind, id);
        ring.forget(&of(Contact, "14"));
        assert_eq!(read(&ring, 10, Channel::Runs, 9), Some((vec![11, 14], 14)));
        ring.forget(&of(Contact, "13"));
        assert_eq!(read(&ring, 12, Channel::Events, 9), None);
        assert_eq!(read(&ring, 13, Channel::Events, 9), Some((vec![14], 14)));
        assert_eq!(ring.bytes, event(14, Run).bytes());
    }

    #[test]
    fn an_event_is_shown_from_memory_for_a_limited_time() {
        let began = Instant::now();
        let later = began + erasure::SHOWN_FOR;
        let mut ring = ring([]);
        ring.push(event(11, Run), usize::MAX, began);
        ring.push(event(12, Run), usize::MAX, later);
        let found = |after| match ring.read(after, Channel::Runs, 9, later) {
            Found::Events(events, _) => Some(events.len()),
            Found::Gone => None,
        };
        assert_eq!((found(10), found(11), found(12)), (None, Some(1), Some(0)));
    }
}
