//! The steps that wait for an event, folded from the log: by organization and by the type they
//! wait for, so that an event that nobody waits for costs nothing. There may be very many, so they
//! are taken some at a time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use schemas::{Event, OrgId, Recorded, RunId, StepId};

/// Waits that are taken at a time.
const AT_ONCE: usize = 256;

/// A step that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Where it began; only what was recorded after it counts.
    pub(super) sequence: u64,
    pub(super) run: RunId,
    pub(super) step: StepId,
    pub(super) attempt: u32,
    event: String,
}

/// The waits of some partitions.
#[derive(Debug, Default)]
pub(super) struct Waits(HashMap<OrgId, OfOrg>);

#[derive(Debug, Default)]
struct OfOrg {
    /// By the pattern, then in the order in which they began.
    by_event: HashMap<String, BTreeMap<u64, Arc<Wait>>>,
    by_run: HashMap<RunId, Vec<Arc<Wait>>>,
}

impl Waits {
    /// Takes in an event of a run; one that was taken in before changes nothing. An end that comes
    /// again ends nothing that began after it.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        let org = &recorded.stream.org;
        match &recorded.event {
            Event::RunEventAwaited(awaited) => {
                let wait = Arc::new(Wait {
                    sequence: recorded.sequence,
                    run: awaited.run_id.clone(),
                    step: awaited.step_id.clone(),
                    attempt: awaited.attempt,
                    event: awaited.event.clone(),
                });
                self.0.entry(org.clone()).or_default().add(wait);
            }
            Event::RunStepSucceeded(ended) => {
                self.end(recorded, &ended.run_id, Some(&ended.step_id));
            }
            Event::RunStepFailed(ended) => {
                self.end(recorded, &ended.run_id, Some(&ended.step_id));
            }
            Event::RunSucceeded(ended) => self.end(recorded, &ended.run_id, None),
            Event::RunFailed(ended) => self.end(recorded, &ended.run_id, None),
            Event::RunCancelled(ended) => self.end(recorded, &ended.run_id, None),
            Event::RunForgotten(gone) => self.end(recorded, &gone.run_id, None),
            _ => {}
        }
    }

    /// Whether an event of this type may end any wait.
    pub(super) fn any_waits(&self, org: &OrgId, event_type: &str, sequence: u64) -> bool {
        let mut found = self.for_type(org, event_type);
        found.any(|waits| waits.range(..sequence).next().is_some())
    }

    /// The waits that an event of this type may end, oldest first: the first of those that began
    /// after `after`. The others follow in the next call, after the last of these.
    pub(super) fn waiting(
        &self,
        org: &OrgId,
        event_type: &str,
        (after, sequence): (u64, u64),
    ) -> Vec<Arc<Wait>> {
        if after >= sequence {
            return Vec::new();
        }
        let between = (Bound::Excluded(after), Bound::Excluded(sequence));
        let mut found = Vec::new();
        for waits in self.for_type(org, event_type) {
            let waits = waits.range(between).take(AT_ONCE);
            found.extend(waits.map(|(_, wait)| Arc::clone(wait)));
        }
        found.sort_unstable_by_key(|wait| wait.sequence);
        found.truncate(AT_ONCE);
        found
    }

    /// The waits for each of the patterns that match a type.
    fn for_type<'a>(
        &'a self,
        org: &OrgId,
        event_type: &'a str,
    ) -> impl Iterator<Item = &'a BTreeMap<u64, Arc<Wait>>> + use<'a> {
        let of_org = self.0.get(org).into_iter();
        of_org.flat_map(move |of_org| {
            patterns(event_type).filter_map(move |pattern| of_org.by_event.get(&pattern))
        })
    }

    /// Where the waits of each partition began, in order.
    pub(super) fn sequences(&self, partition_of: impl Fn(&OrgId) -> u16) -> HashMap<u16, Vec<u64>> {
        let mut by_partition: HashMap<u16, Vec<u64>> = HashMap::new();
        for (org, of_org) in &self.0 {
            let waits = of_org.by_run.values().flatten();
            let sequences = by_partition.entry(partition_of(org)).or_default();
            sequences.extend(waits.map(|wait| wait.sequence));
        }
        for all in by_partition.values_mut() {
            all.sort_unstable();
        }
        by_partition
    }

    /// Drops organizations that now belong to other processes.
    pub(super) fn retain(&mut self, is_ours: impl Fn(&OrgId) -> bool) {
        self.0.retain(|org, _| is_ours(org));
    }

    /// Ends the waits of a run that had begun by then; of one step, if one is named.
    fn end(&mut self, by: &Recorded, run: &RunId, step: Option<&StepId>) {
        let org = &by.stream.org;
        let Some(of_org) = self.0.get_mut(org) else {
            return;
        };
        of_org.end(run, |wait| {
            wait.sequence < by.sequence && step.is_none_or(|step| wait.step == *step)
        });
        if of_org.by_run.is_empty() {
            self.0.remove(org);
        }
    }
}

impl OfOrg {
    fn add(&mut self, wait: Arc<Wait>) {
        let of_run = self.by_run.entry(wait.run.clone()).or_default();
        if of_run.iter().any(|known| known.sequence == wait.sequence) {
            return;
        }
        of_run.push(Arc::clone(&wait));
        let of_event = self.by_event.entry(wait.event.clone()).or_default();
        of_event.insert(wait.sequence, wait);
    }

    fn end(&mut self, run: &RunId, ends: impl Fn(&Wait) -> bool) {
        let Some(of_run) = self.by_run.get_mut(run) else {
            return;
        };
        let (ended, left): (Vec<_>, Vec<_>) = of_run.drain(..).partition(|wait| ends(wait));
        *of_run = left;
        if of_run.is_empty() {
            self.by_run.remove(run);
        }
        for wait in ended {
            if let Some(of_event) = self.by_event.get_mut(&wait.event) {
                of_event.remove(&wait.sequence);
                if of_event.is_empty() {
                    self.by_event.remove(&wait.event);
                }
            }
        }
    }
}

/// The patterns that match a type: itself, `*`, and `a.*` for each of its beginnings.
fn patterns(event_type: &str) -> impl Iterator<Item = String> {
    let dots = event_type.match_indices('.');
    let beginnings = dots.map(|(at, _)| format!("{}.*", &event_type[..at]));
    let whole = [event_type.to_owned(), "*".to_owned()];
    whole.into_iter().chain(beginnings)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::{AggregateType, Context, EventId, StreamId, run};
    use uuid::Uuid;

    use super::*;

    fn recorded(sequence: u64, event: Event) -> Recorded {
        Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: DateTime::UNIX_EPOCH,
            event,
            context: Context::default(),
            receipt: None,
        }
    }

    fn awaited(sequence: u64, run: &str, event: &str) -> Recorded {
        let event = Event::RunEventAwaited(run::EventAwaited {
            run_id: run.into(),
            workflow_id: "w".into(),
            step_id: "reply".into(),
            attempt: 1,
            event: event.to_owned(),
        });
        recorded(sequence, event)
    }

    fn waiting(waits: &Waits, event_type: &str, sequence: u64) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let after = all.last().copied().unwrap_or(0);
            let found = waits.waiting(&"o".into(), event_type, (after, sequence));
            assert!(found.len() <= AT_ONCE);
            if found.is_empty() {
                break;
            }
            all.extend(found.iter().map(|wait| wait.sequence));
        }
        assert_eq!(
            waits.any_waits(&"o".into(), event_type, sequence),
            !all.is_empty()
        );
        all
    }

    fn failed(sequence: u64, run: &str) -> Recorded {
        let failed = Event::RunFailed(run::Failed {
            run_id: run.into(),
            workflow_id: "w".into(),
            error: "HTTP 500".to_owned(),
        });
        recorded(sequence, failed)
    }

    #[test]
    fn an_event_meets_those_who_waited_for_it_before() {
        let mut waits = Waits::default();
        for (sequence, run, event) in [
            (3, "r3", "lead.*"),
            (1, "r1", "lead.created"),
            (2, "r2", "*"),
            (4, "r4", "deal.created"),
            (9, "r9", "lead.created"),
        ] {
            waits.apply(&awaited(sequence, run, event));
            waits.apply(&awaited(sequence, run, event));
        }
        assert_eq!(waiting(&waits, "lead.created", 5), [1, 2, 3]);
        assert_eq!(waiting(&waits, "custom.a.b", 5), [2]);
        assert_eq!(waits.sequences(|_| 7)[&7], [1, 2, 3, 4, 9]);
    }

    #[test]
    fn many_waits_are_taken_some_at_a_time_each_once_and_in_order() {
        let mut waits = Waits::default();
        for sequence in 1..=1_000 {
            let pattern = ["*", "lead.*", "lead.created"][usize::try_from(sequence % 3).unwrap()];
            waits.apply(&awaited(sequence, &format!("r{sequence}"), pattern));
        }
        let first = waits.waiting(&"o".into(), "lead.created", (0, 5_000));
        assert_eq!(first.len(), AT_ONCE);
        let all = waiting(&waits, "lead.created", 901);
        assert_eq!(all, (1..=900).collect::<Vec<_>>());
        assert!(waiting(&waits, "lead.created", 1).is_empty());
    }

    #[test]
    fn an_end_that_is_delivered_again_leaves_the_waits_that_began_after_it() {
        let mut waits = Waits::default();
        waits.apply(&awaited(1, "r1", "lead.created"));
        waits.apply(&failed(2, "r1"));
        assert!(waits.0.is_empty());
        // The run was retried and waits again.
        waits.apply(&awaited(5, "r1", "lead.created"));
        waits.apply(&failed(2, "r1"));
        assert_eq!(waiting(&waits, "lead.created", 9), [5]);
        waits.apply(&failed(7, "r1"));
        assert!(waits.0.is_empty());
    }

    #[test]
    fn a_wait_ends_with_its_step_or_its_run() {
        let mut waits = Waits::default();
        waits.apply(&awaited(1, "r1", "lead.created"));
        waits.apply(&awaited(2, "r2", "lead.created"));
        let succeeded = Event::RunStepSucceeded(run::StepSucceeded {
            run_id: "r1".into(),
            workflow_id: "w".into(),
            step_id: "reply".into(),
            attempt: 1,
            way: run::Way::OnTimeout,
            output: serde_json::Value::Null,
        });
        waits.apply(&recorded(3, succeeded));
        assert_eq!(waiting(&waits, "lead.created", 9), [2]);
        let cancelled = Event::RunCancelled(run::Cancelled {
            run_id: "r2".into(),
            workflow_id: "w".into(),
        });
        waits.apply(&recorded(4, cancelled));
        assert!(waits.0.is_empty());
    }

    #[test]
    fn a_forgotten_run_waits_for_nothing() {
        let mut waits = Waits::default();
        waits.apply(&awaited(1, "r1", "lead.created"));
        let forgotten = Event::RunForgotten(run::Forgotten {
            run_id: "r1".into(),
        });
        waits.apply(&recorded(2, forgotten));
        assert!(waits.0.is_empty());
    }
}
