//! The steps that wait for an event, folded from the log: by organization and by the type they
//! wait for, so that an event that nobody waits for costs nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use schemas::{Event, OrgId, Recorded, RunId, StepId};

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
    /// Takes in an event of a run; one that was taken in before changes nothing.
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
                self.end(org, &ended.run_id, |wait| wait.step == ended.step_id);
            }
            Event::RunStepFailed(ended) => {
                self.end(org, &ended.run_id, |wait| wait.step == ended.step_id);
            }
            Event::RunSucceeded(ended) => self.end(org, &ended.run_id, |_| true),
            Event::RunFailed(ended) => self.end(org, &ended.run_id, |_| true),
            Event::RunCancelled(ended) => self.end(org, &ended.run_id, |_| true),
            _ => {}
        }
    }

    /// The waits that an event of this type may end, oldest first.
    pub(super) fn waiting(&self, org: &OrgId, event_type: &str, sequence: u64) -> Vec<Arc<Wait>> {
        let Some(of_org) = self.0.get(org) else {
            return Vec::new();
        };
        let found = patterns(event_type).filter_map(|pattern| of_org.by_event.get(&pattern));
        let mut found: Vec<_> = found
            .flat_map(|waits| waits.range(..sequence).map(|(_, wait)| Arc::clone(wait)))
            .collect();
        found.sort_unstable_by_key(|wait| wait.sequence);
        found
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

    fn end(&mut self, org: &OrgId, run: &RunId, ends: impl Fn(&Wait) -> bool) {
        let Some(of_org) = self.0.get_mut(org) else {
            return;
        };
        of_org.end(run, ends);
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
        let found = waits.waiting(&"o".into(), event_type, sequence);
        found.iter().map(|wait| wait.sequence).collect()
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
}
