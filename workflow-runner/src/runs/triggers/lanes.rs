//! One lane for each organization with events to be judged: a lane's events are judged in order,
//! and lanes take turns, so that the flood of one organization delays no other.
//!
//! A lane holds the events that it began with. Whatever comes while it is busy is only counted,
//! and read from the log again when it is its turn: what waits costs nothing.

use std::collections::{HashMap, VecDeque};

use schemas::{OrgId, Recorded};

/// Bytes of events held in memory at most, about; further ones are read again when it is their
/// turn.
const HELD_BYTES: usize = 32 * 1024 * 1024;
/// What an event takes up beside its data.
const EVENT_BYTES: usize = 1_024;

/// What is to be judged next.
#[derive(Debug)]
pub(super) enum Task {
    /// These events, of so many bytes.
    Events(Vec<Recorded>, usize),
    /// The organization's events behind `after`, up to `until`.
    Behind { after: u64, until: u64 },
}

#[derive(Debug)]
struct Lane {
    partition: u16,
    /// Everything up to here has been judged.
    through: u64,
    /// The last event that is to be judged.
    last: u64,
}

/// The lanes that have something to do.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_org: HashMap<OrgId, Lane>,
    ready: VecDeque<(OrgId, Task)>,
    held: usize,
}

impl Lanes {
    /// Events of an organization are to be judged; they follow each other.
    pub(super) fn offer(&mut self, org: &OrgId, partition: u16, events: Vec<Recorded>) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        let (through, last) = (first.sequence - 1, last.sequence);
        if let Some(lane) = self.by_org.get_mut(org) {
            lane.last = lane.last.max(last);
            return;
        }
        let lane = Lane {
            partition,
            through,
            last,
        };
        self.by_org.insert(org.clone(), lane);
        let room = HELD_BYTES.saturating_sub(self.held);
        let task = if let Some(bytes) = bytes_within(&events, room) {
            self.held += bytes;
            Task::Events(events, bytes)
        } else {
            let (after, until) = (through, last);
            Task::Behind { after, until }
        };
        self.ready.push_back((org.clone(), task));
    }

    /// The next organization's turn.
    pub(super) fn next(&mut self) -> Option<(OrgId, Task)> {
        let next = self.ready.pop_front();
        if let Some((_, Task::Events(_, bytes))) = &next {
            self.held -= bytes;
        }
        next
    }

    /// An organization's events have been judged up to `through`.
    pub(super) fn judged(&mut self, org: &OrgId, through: u64) {
        let Some(lane) = self.by_org.get_mut(org) else {
            return;
        };
        lane.through = lane.through.max(through);
        let (after, until) = (lane.through, lane.last);
        if after >= until {
            self.by_org.remove(org);
        } else {
            let task = Task::Behind { after, until };
            self.ready.push_back((org.clone(), task));
        }
    }

    /// Up to where all events of a partition's lanes have been judged; `None` where there is
    /// nothing left to judge.
    pub(super) fn through(&self, partition: u16) -> Option<u64> {
        let lanes = self.by_org.values();
        let of_partition = lanes.filter(|lane| lane.partition == partition);
        of_partition.map(|lane| lane.through).min()
    }

    /// Lets go of partitions that are others' now.
    pub(super) fn retain(&mut self, is_ours: impl Fn(u16) -> bool) {
        self.by_org.retain(|_, lane| is_ours(lane.partition));
        let lanes = &self.by_org;
        self.ready.retain(|(org, _)| lanes.contains_key(org));
        let held = self.ready.iter().map(|(_, task)| match task {
            Task::Events(_, bytes) => *bytes,
            Task::Behind { .. } => 0,
        });
        self.held = held.sum();
    }

    /// Bytes of events that are held, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.held
    }

    pub(super) fn len(&self) -> usize {
        self.by_org.len()
    }
}

/// How much events take up in memory, about; `None` where that is more than `room`.
fn bytes_within(events: &[Recorded], room: usize) -> Option<usize> {
    let mut bytes = 0;
    for recorded in events {
        bytes += EVENT_BYTES + recorded.event.encode().map_or(0, |data| data.len());
        if bytes > room {
            return None;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::{AggregateType, Context, Custom, Event, EventId, StreamId};
    use uuid::Uuid;

    use super::*;

    fn event(sequence: u64) -> Recorded {
        Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: DateTime::UNIX_EPOCH,
            event: Event::Custom(Custom {
                name: "x".to_owned(),
                data: serde_json::Map::new(),
            }),
            context: Context::default(),
            receipt: None,
        }
    }

    fn turns(lanes: &mut Lanes) -> Vec<(String, u64)> {
        let next = std::iter::from_fn(|| lanes.next());
        next.map(|(org, task)| match task {
            Task::Events(events, _) => (org.to_string(), events[0].sequence),
            Task::Behind { after, .. } => (org.to_string(), after),
        })
        .collect()
    }

    #[test]
    fn organizations_take_turns_however_much_one_has() {
        let (many, few) = (OrgId::from("many"), OrgId::from("few"));
        let mut lanes = Lanes::default();
        lanes.offer(&many, 1, vec![event(1)]);
        for sequence in 2..100 {
            lanes.offer(&many, 1, vec![event(sequence)]);
        }
        lanes.offer(&few, 2, vec![event(100)]);
        assert_eq!(
            turns(&mut lanes),
            [("many".to_owned(), 1), ("few".to_owned(), 100)]
        );
        assert_eq!((lanes.through(1), lanes.through(2)), (Some(0), Some(99)));
        lanes.judged(&many, 1);
        lanes.judged(&few, 100);
        assert_eq!(turns(&mut lanes), [("many".to_owned(), 1)]);
        assert_eq!((lanes.through(1), lanes.through(2)), (Some(1), None));
        lanes.judged(&many, 99);
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn what_is_held_is_bounded_in_bytes() {
        let mut lanes = Lanes::default();
        let large = |sequence| {
            let mut large = event(sequence);
            let mut data = serde_json::Map::new();
            data.insert("x".to_owned(), "x".repeat(HELD_BYTES / 4).into());
            let name = "x".to_owned();
            large.event = Event::Custom(Custom { name, data });
            large
        };
        for nth in 1..=8 {
            lanes.offer(&OrgId::from(format!("o{nth}")), 1, vec![large(nth)]);
        }
        assert!(lanes.held_bytes() <= HELD_BYTES && lanes.held_bytes() > HELD_BYTES / 2);
        assert_eq!(turns(&mut lanes).len(), 8);
        assert_eq!(lanes.held_bytes(), 0);
    }

    #[test]
    fn what_is_lost_is_forgotten() {
        let mut lanes = Lanes::default();
        lanes.offer(&"o".into(), 1, vec![event(1)]);
        lanes.retain(|partition| partition != 1);
        assert!(lanes.next().is_none());
        lanes.judged(&"o".into(), 1);
        assert_eq!((lanes.len(), lanes.held), (0, 0));
    }
}
