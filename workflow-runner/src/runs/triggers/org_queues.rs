//! One queue for each organization with events to be matched: a queue's events are matched in
//! order, and queues take turns, so that the flood of one organization delays no other.
//!
//! A queue holds the events that it began with. Those that arrive while it is busy are only
//! counted, and read from the log again when it is its turn: waiting costs nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use schemas::{OrgId, Recorded};

/// Approximate bytes of events held in memory at most; further ones are read again when it is their
/// turn.
const HELD_BYTES: usize = 32 * 1024 * 1024;
/// Memory of an event besides its data.
const EVENT_BYTES: usize = 1_024;

/// What is to be matched next.
#[derive(Debug)]
pub(super) enum Task {
    /// These events, of the given number of bytes.
    Events(Vec<Arc<Recorded>>, usize),
    /// The organization's events after `after`, up to `until`.
    Behind { after: u64, until: u64 },
}

/// One turn of a queue. A queue that was lost and gained again is a different one: how far the
/// first was matched says nothing about it, since its counts start over from the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) org: OrgId,
    queue: u64,
}

#[derive(Debug)]
struct OrgQueue {
    number: u64,
    partition: u16,
    /// Everything up to here has been matched.
    through: u64,
    /// The last event that is to be matched.
    last: u64,
}

/// The queues that have something to do.
#[derive(Debug, Default)]
pub(super) struct OrgQueues {
    by_org: HashMap<OrgId, OrgQueue>,
    ready: VecDeque<(Turn, Task)>,
    held: usize,
    /// Number of queues that have begun.
    begun: u64,
}

impl OrgQueues {
    /// Queues consecutive events of an organization to be matched.
    pub(super) fn offer(&mut self, org: &OrgId, partition: u16, events: Vec<Arc<Recorded>>) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        let (through, last) = (first.sequence - 1, last.sequence);
        if let Some(queue) = self.by_org.get_mut(org) {
            queue.last = queue.last.max(last);
            return;
        }
        self.begun += 1;
        let number = self.begun;
        let queue = OrgQueue {
            number,
            partition,
            through,
            last,
        };
        self.by_org.insert(org.clone(), queue);
        let room = HELD_BYTES.saturating_sub(self.held);
        let task = if let Some(bytes) = bytes_within(&events, room) {
            self.held += bytes;
            Task::Events(events, bytes)
        } else {
            let (after, until) = (through, last);
            Task::Behind { after, until }
        };
        let turn = Turn {
            org: org.clone(),
            queue: number,
        };
        self.ready.push_back((turn, task));
    }

    /// The next organization's turn.
    pub(super) fn next(&mut self) -> Option<(Turn, Task)> {
        let next = self.ready.pop_front();
        if let Some((_, Task::Events(_, bytes))) = &next {
            self.held -= bytes;
        }
        next
    }

    /// Records that the events of a turn have been matched up to `through`.
    pub(super) fn matched(&mut self, turn: Turn, through: u64) {
        let queue = self.by_org.get_mut(&turn.org);
        let Some(queue) = queue.filter(|queue| queue.number == turn.queue) else {
            return;
        };
        queue.through = queue.through.max(through);
        let (after, until) = (queue.through, queue.last);
        if after >= until {
            self.by_org.remove(&turn.org);
        } else {
            let task = Task::Behind { after, until };
            self.ready.push_back((turn, task));
        }
    }

    /// Up to where all events of a partition's queues have been matched; `None` if nothing is left
    /// to match.
    pub(super) fn through(&self, partition: u16) -> Option<u64> {
        let queues = self.by_org.values();
        let of_partition = queues.filter(|queue| queue.partition == partition);
        of_partition.map(|queue| queue.through).min()
    }

    /// Drops partitions that now belong to other processes.
    pub(super) fn retain(&mut self, is_ours: impl Fn(u16) -> bool) {
        self.by_org.retain(|_, queue| is_ours(queue.partition));
        let queues = &self.by_org;
        self.ready
            .retain(|(turn, _)| queues.contains_key(&turn.org));
        let held = self.ready.iter().map(|(_, task)| match task {
            Task::Events(_, bytes) => *bytes,
            Task::Behind { .. } => 0,
        });
        self.held = held.sum();
    }

    /// Approximate bytes of events held.
    pub(super) fn held_bytes(&self) -> usize {
        self.held
    }

    pub(super) fn len(&self) -> usize {
        self.by_org.len()
    }
}

/// Approximate memory of events; `None` if that is more than `room`.
fn bytes_within(events: &[Arc<Recorded>], room: usize) -> Option<usize> {
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

    fn event(sequence: u64) -> Arc<Recorded> {
        Arc::new(Recorded {
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
        })
    }

    /// The turns that are due, and where each begins.
    fn turns(queues: &mut OrgQueues) -> (Vec<Turn>, Vec<u64>) {
        let next = std::iter::from_fn(|| queues.next());
        next.map(|(turn, task)| match task {
            Task::Events(events, _) => (turn, events[0].sequence),
            Task::Behind { after, .. } => (turn, after),
        })
        .unzip()
    }

    #[test]
    fn organizations_take_turns_however_much_one_has() {
        let (many, few) = (OrgId::from("many"), OrgId::from("few"));
        let mut queues = OrgQueues::default();
        queues.offer(&many, 1, vec![event(1)]);
        for sequence in 2..100 {
            queues.offer(&many, 1, vec![event(sequence)]);
        }
        queues.offer(&few, 2, vec![event(100)]);
        let (due, begin) = turns(&mut queues);
        let [first, second] = &due[..] else {
            panic!("{due:?}")
        };
        assert_eq!((&first.org, &second.org), (&many, &few));
        assert_eq!(begin, [1, 100]);
        assert_eq!((queues.through(1), queues.through(2)), (Some(0), Some(99)));
        queues.matched(first.clone(), 1);
        queues.matched(second.clone(), 100);
        assert_eq!(turns(&mut queues), (vec![first.clone()], vec![1]));
        assert_eq!((queues.through(1), queues.through(2)), (Some(1), None));
        queues.matched(first.clone(), 99);
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn what_is_held_is_bounded_in_bytes() {
        let mut queues = OrgQueues::default();
        let large = |sequence| {
            let mut large = Arc::unwrap_or_clone(event(sequence));
            let mut data = serde_json::Map::new();
            data.insert("x".to_owned(), "x".repeat(HELD_BYTES / 4).into());
            let name = "x".to_owned();
            large.event = Event::Custom(Custom { name, data });
            Arc::new(large)
        };
        for nth in 1..=8 {
            queues.offer(&OrgId::from(format!("o{nth}")), 1, vec![large(nth)]);
        }
        assert!(queues.held_bytes() <= HELD_BYTES && queues.held_bytes() > HELD_BYTES / 2);
        assert_eq!(turns(&mut queues).0.len(), 8);
        assert_eq!(queues.held_bytes(), 0);
    }

    #[test]
    fn what_is_lost_is_forgotten() {
        let mut queues = OrgQueues::default();
        queues.offer(&"o".into(), 1, vec![event(1)]);
        queues.retain(|partition| partition != 1);
        assert!(queues.next().is_none());
        assert_eq!((queues.len(), queues.held), (0, 0));
    }

    #[test]
    fn who_matched_before_a_queue_was_lost_says_nothing_of_the_one_that_came_back() {
        let mut queues = OrgQueues::default();
        let org = OrgId::from("o");
        queues.offer(&org, 1, vec![event(5), event(6)]);
        let (before, _) = turns(&mut queues);
        queues.retain(|partition| partition != 1);
        // It comes back with a checkpoint from before the fifth.
        queues.offer(&org, 1, vec![event(5), event(6), event(7)]);
        let (after, _) = turns(&mut queues);
        queues.matched(before[0].clone(), 6);
        assert_eq!(queues.through(1), Some(4));
        assert_eq!(turns(&mut queues), (vec![], vec![]));
        queues.matched(after[0].clone(), 7);
        assert_eq!(queues.len(), 0);
    }
}
