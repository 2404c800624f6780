//! The latest public events of one organization, shared by all of its sockets.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::circles::Disclosure;
use event_log::Position;
use schemas::{AggregateType, Recorded};
use serde::Serialize;
use serde_json::Value;

use super::channel::Channel;

/// An event as sockets show it, encoded once however many are listening.
#[derive(Debug)]
pub(super) struct LiveEvent {
    sequence: u64,
    kind: AggregateType,
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

    fn bytes(&self) -> usize {
        self.rest.len() + size_of::<Self>()
    }

    #[cfg(test)]
    pub(super) fn bare(sequence: u64, kind: AggregateType) -> Self {
        Self {
            sequence,
            kind,
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
    events: VecDeque<Arc<LiveEvent>>,
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
    pub(super) fn push(&mut self, event: LiveEvent, max_bytes: usize) {
        self.bytes += event.bytes();
        self.events.push_back(Arc::new(event));
        while self.events.len() > 1 && (self.bytes > max_bytes || self.events.len() > MAX_EVENTS) {
            if let Some(oldest) = self.events.pop_front() {
                self.bytes -= oldest.bytes();
                self.base = oldest.sequence;
            }
        }
    }

    /// Drops all events: those up to `through` must be read from the log again.
    pub(super) fn clear(&mut self, through: u64) {
        *self = Self::new(through);
    }

    /// Up to `max` of the channel's events after the sequence `after`.
    pub(super) fn read(&self, after: u64, channel: Channel, max: usize) -> Found {
        if after < self.base {
            return Found::Gone;
        }
        let start = self.events.partition_point(|event| event.sequence <= after);
        let mut through = after;
        let mut found = Vec::new();
        let mut bytes = 0;
        for event in self.events.range(start..) {
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
            ring.push(event(sequence, kind), usize::MAX);
        }
        ring
    }

    fn read(ring: &Ring, after: u64, channel: Channel, max: usize) -> Option<(Vec<u64>, u64)> {
        match ring.read(after, channel, max) {
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
        let size = event(0, Run).bytes();
        for sequence in 11..=20 {
            ring.push(event(sequence, Run), 3 * size);
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
        ring.push(event(11, Run), 1);
        ring.push(event(12, Run), 1);
        assert_eq!(read(&ring, 11, Channel::Runs, 9), Some((vec![12], 12)));
    }
}
