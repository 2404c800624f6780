//! Counts the runs that each cause has led to, which bounds workflows that set each other off.
//!
//! One event or run from outside may lead to many runs, which may lead to many more: three NOTIFY
//! steps in a workflow that listens to them triple with every hop. So runs set off by what a run
//! did are counted, for each cause that they go back to.
//!
//! **Correct after any end.** An organization's events are matched in order, one batch after the
//! other, and decisions follow from the count before. A batch's counts are entered at its end
//! together with how far it went, and saved together; a process that matches the events after that
//! again starts with the same counts and comes to the same decisions.
//!
//! **Bounded.** For each organization, the most recently counted causes are held. One that was
//! dropped is resumed at the number that its event's own run had.

use std::collections::HashMap;

use schemas::workflow::WhyNot;
use schemas::{Cause, OrgId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// After this many runs that events set off one after the other, nothing more is set off.
pub(super) use domain::workflow::MAX_HOPS;

/// How often an organization is notified, per bound, of what one cause has not led to.
const MAX_REPORTED: u8 = 3;
/// Causes of one organization in a generation; the previous one is held as well.
const GENERATION: usize = 2_048;
/// Approximate number of causes held in total.
const HELD: usize = 200_000;
/// Causes that are saved of one partition at most.
pub(super) const NOTED: usize = 8_192;

/// A bound on what one cause may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The number of runs that have set each other off, one after the other.
    Hops,
    /// The number of runs set off in total.
    Runs,
}

impl From<Bound> for WhyNot {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::Hops => Self::Hops,
            Bound::Runs => Self::Runs,
        }
    }
}

/// What a cause has led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    runs: u32,
    reported_hops: u8,
    reported_runs: u8,
}

impl Spent {
    /// The number of the notice about a bound that is met; `None` if there were enough of them.
    fn next_notice(&mut self, bound: Bound) -> Option<u8> {
        let reported = match bound {
            Bound::Hops => &mut self.reported_hops,
            Bound::Runs => &mut self.reported_runs,
        };
        let nth = *reported;
        *reported = MAX_REPORTED.min(nth + 1);
        (nth < MAX_REPORTED).then_some(nth)
    }
}

/// The counts of one organization.
#[derive(Clone, Debug, Default)]
struct OrgCounts {
    /// Every event up to here has been matched and counted.
    through: u64,
    young: HashMap<Uuid, Spent>,
    old: HashMap<Uuid, Spent>,
}

/// All counts.
#[derive(Debug, Default)]
pub(super) struct CauseCounts(HashMap<OrgId, OrgCounts>);

/// The counts of a batch of an organization's events while it is matched.
#[derive(Debug, Default)]
pub(super) struct BatchCounts {
    /// Every event up to here has been matched and counted before.
    pub(super) through: u64,
    changed: HashMap<Uuid, Spent>,
}

/// Whether an event may set a workflow off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may; with the cause that the run goes back to.
    SetsOff(Cause),
    /// It may not: its cause has led to too much. `notice` is the number of the notice, if any.
    Refused { bound: Bound, notice: Option<u8> },
}

/// An organization's counts as saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) org: OrgId,
    pub(super) through: u64,
    /// Each with its runs, and its notices about either bound.
    pub(super) causes: Vec<(Uuid, u32, u8, u8)>,
}

impl OrgCounts {
    fn get(&self, id: Uuid) -> Option<Spent> {
        self.young.get(&id).or_else(|| self.old.get(&id)).copied()
    }

    fn enter(&mut self, id: Uuid, spent: Spent) {
        self.old.remove(&id);
        self.young.insert(id, spent);
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
    }

    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

impl CauseCounts {
    /// Begins a batch of an organization's events.
    pub(super) fn open(&self, org: &OrgId) -> BatchCounts {
        let counts = self.0.get(org);
        BatchCounts {
            through: counts.map_or(0, |counts| counts.through),
            changed: HashMap::new(),
        }
    }

    /// Decides on an event after `hops` hops that goes back to this cause; `None` if the
    /// organization's counts are no longer those that the batch began with.
    pub(super) fn decide(
        &self,
        org: &OrgId,
        batch: &mut BatchCounts,
        (cause, hops): (Cause, u8),
        budget: u32,
    ) -> Option<Verdict> {
        let counts = self.0.get(org);
        if counts.map_or(0, |counts| counts.through) != batch.through {
            return None;
        }
        let known = batch.changed.get(&cause.id).copied();
        let known = known.or_else(|| counts?.get(cause.id));
        let mut spent = known.unwrap_or_default();
        spent.runs = spent.runs.max(cause.runs);
        let bound = if hops >= MAX_HOPS {
            Some(Bound::Hops)
        } else {
            (spent.runs >= budget).then_some(Bound::Runs)
        };
        let verdict = if let Some(bound) = bound {
            let notice = spent.next_notice(bound);
            Verdict::Refused { bound, notice }
        } else {
            spent.runs += 1;
            let runs = spent.runs;
            Verdict::SetsOff(Cause { runs, ..cause })
        };
        batch.changed.insert(cause.id, spent);
        Some(verdict)
    }

    /// Enters a batch that was matched up to `through` and whose results are in the log. `false` if
    /// others have counted meanwhile: then the batch must be matched again, by their counts.
    pub(super) fn close(&mut self, org: &OrgId, batch: BatchCounts, through: u64) -> bool {
        if batch.changed.is_empty() {
            return true;
        }
        let before = self.0.get(org).map_or(0, |counts| counts.through);
        if before != batch.through {
            return false;
        }
        let counts = self.0.entry(org.clone()).or_default();
        counts.through = through;
        for (id, spent) in batch.changed {
            counts.enter(id, spent);
        }
        self.let_go();
        true
    }

    /// Drops the oldest causes of the organization that holds most, if there are too many in total.
    fn let_go(&mut self) {
        let held: usize = self.0.values().map(OrgCounts::len).sum();
        let most = self.0.values_mut().max_by_key(|counts| counts.len());
        if let Some(counts) = most.filter(|_| held > HELD) {
            counts.old = std::mem::take(&mut counts.young);
        }
    }

    /// Drops organizations that now belong to other processes.
    pub(super) fn retain(&mut self, is_ours: impl Fn(&OrgId) -> bool) {
        self.0.retain(|org, _| is_ours(org));
    }

    /// What to save of the organizations of each partition.
    pub(super) fn notes(&self, partition_of: impl Fn(&OrgId) -> u16) -> HashMap<u16, Vec<Noted>> {
        let mut by_partition: HashMap<u16, Vec<(&OrgId, &OrgCounts)>> = HashMap::new();
        for (org, counts) in &self.0 {
            let of_partition = by_partition.entry(partition_of(org)).or_default();
            of_partition.push((org, counts));
        }
        let noted = by_partition.into_iter().map(|(partition, mut all_counts)| {
            all_counts.sort_unstable_by_key(|(org, _)| *org);
            let most = NOTED / all_counts.len().max(1);
            let noted = all_counts.into_iter().map(|(org, counts)| {
                let causes = counts.young.iter().chain(&counts.old).take(most);
                let mut causes: Vec<_> = causes
                    .map(|(id, spent)| (*id, spent.runs, spent.reported_hops, spent.reported_runs))
                    .collect();
                causes.sort_unstable();
                Noted {
                    org: org.clone(),
                    through: counts.through,
                    causes,
                }
            });
            (partition, noted.collect())
        });
        noted.collect()
    }

    /// Takes over the saved counts of a partition's organizations, and drops any others of them.
    pub(super) fn take_over(&mut self, is_of_it: impl Fn(&OrgId) -> bool, noted: Vec<Noted>) {
        self.0.retain(|org, _| !is_of_it(org));
        for noted in noted {
            let mut counts = OrgCounts {
                through: noted.through,
                ..OrgCounts::default()
            };
            for (id, runs, reported_hops, reported_runs) in noted.causes {
                let spent = Spent {
                    runs,
                    reported_hops,
                    reported_runs,
                };
                counts.old.insert(id, spent);
            }
            self.0.insert(noted.org, counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u32 = 5;

    fn org() -> OrgId {
        "o".into()
    }

    fn cause(id: u128) -> Cause {
        Cause::new(Uuid::from_u128(id))
    }

    /// Matches a batch of events of one cause; returns the verdict on each.
    fn count(
        cause_counts: &mut CauseCounts,
        id: u128,
        events: std::ops::RangeInclusive<u64>,
    ) -> Vec<Verdict> {
        let mut batch = cause_counts.open(&org());
        let through = *events.end();
        let fresh = events.filter(|event| *event > batch.through).count();
        let verdicts = (0..fresh)
            .map(|_| {
                cause_counts
                    .decide(&org(), &mut batch, (cause(id), 1), BUDGET)
                    .unwrap()
            })
            .collect();
        assert!(cause_counts.close(&org(), batch, through));
        verdicts
    }

    fn runs(verdicts: &[Verdict]) -> Vec<u32> {
        let set_off = verdicts.iter().filter_map(|verdict| match verdict {
            Verdict::SetsOff(cause) => Some(cause.runs),
            Verdict::Refused { .. } => None,
        });
        set_off.collect()
    }

    fn noted(cause_counts: &CauseCounts) -> CauseCounts {
        let mut other = CauseCounts::default();
        let mut notes = cause_counts.notes(|_| 7);
        other.take_over(|_| true, notes.remove(&7).unwrap());
        other
    }

    #[test]
    fn a_cause_leads_to_no_more_runs_than_its_budget_in_any_process_or_repeat() {
        let mut cause_counts = CauseCounts::default();
        assert_eq!(runs(&count(&mut cause_counts, 1, 1..=3)), [1, 2, 3]);
        let mut other = noted(&cause_counts);
        // What was matched before the save is not counted again, what follows is.
        let here = count(&mut cause_counts, 1, 2..=9);
        assert_eq!(runs(&here), [4, 5]);
        assert_eq!(count(&mut other, 1, 2..=9), here);
        assert_eq!(runs(&count(&mut other, 2, 10..=11)), [1, 2]);
    }

    #[test]
    fn only_the_first_refused_triggers_of_each_bound_are_reported() {
        let mut cause_counts = CauseCounts::default();
        count(&mut cause_counts, 1, 1..=5);
        let reported = |verdicts: &[Verdict]| -> Vec<u8> {
            let reported = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Refused { notice, .. } => *notice,
                Verdict::SetsOff(_) => None,
            });
            reported.collect()
        };
        assert_eq!(reported(&count(&mut cause_counts, 1, 6..=7)), [0, 1]);
        let mut other = noted(&cause_counts);
        assert_eq!(reported(&count(&mut other, 1, 8..=20)), [2]);
        assert_eq!(reported(&count(&mut other, 1, 21..=30)), [] as [u8; 0]);
        let mut batch = other.open(&org());
        let last_hop = other.decide(&org(), &mut batch, (cause(1), MAX_HOPS), BUDGET);
        assert_eq!(
            reported(&[last_hop.unwrap()]),
            [0],
            "each bound is reported"
        );
    }

    #[test]
    fn the_last_hop_sets_nothing_off() {
        let (cause_counts, mut batch) = (CauseCounts::default(), BatchCounts::default());
        let mut decide = |hops| cause_counts.decide(&org(), &mut batch, (cause(1), hops), BUDGET);
        assert!(matches!(decide(MAX_HOPS - 1), Some(Verdict::SetsOff(_))));
        let refused = Verdict::Refused {
            bound: Bound::Hops,
            notice: Some(0),
        };
        assert_eq!(decide(MAX_HOPS), Some(refused));
    }

    #[test]
    fn counts_held_and_saved_are_bounded_and_a_dropped_cause_resumes_its_count() {
        let mut cause_counts = CauseCounts::default();
        for id in 1..=3 * GENERATION as u64 {
            count(&mut cause_counts, id.into(), id..=id);
        }
        assert!(cause_counts.0[&org()].len() <= 2 * GENERATION);
        let stored = postcard::to_extend(&cause_counts.notes(|_| 7), Vec::new()).unwrap();
        assert!(stored.len() < NOTED * 22, "{}", stored.len());
        let mut batch = cause_counts.open(&org());
        let late = Cause {
            runs: BUDGET,
            ..cause(1)
        };
        let verdict = cause_counts
            .decide(&org(), &mut batch, (late, 1), BUDGET)
            .unwrap();
        assert!(matches!(verdict, Verdict::Refused { .. }), "{verdict:?}");
    }

    #[test]
    fn a_batch_that_ends_after_its_organization_went_counts_nothing() {
        let mut cause_counts = CauseCounts::default();
        count(&mut cause_counts, 1, 1..=3);
        let mut batch = cause_counts.open(&org());
        cause_counts.decide(&org(), &mut batch, (cause(1), 1), BUDGET);
        cause_counts.retain(|_| false);
        let without = cause_counts.decide(&org(), &mut batch, (cause(1), 1), BUDGET);
        assert_eq!(without, None, "it would count from the beginning");
        assert!(!cause_counts.close(&org(), batch, 4));
        assert!(cause_counts.0.is_empty());
    }
}
