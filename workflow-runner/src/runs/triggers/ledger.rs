//! How many runs each cause has led to: what bounds workflows that set each other off.
//!
//! One event or run from outside may lead to many runs, which may lead to many more: three NOTIFY
//! steps in a workflow that listens to them triple with every hop. So runs are counted that were
//! set off by what a run did, for each cause that they go back to.
//!
//! **Right after any end.** An organization's events are judged in their order, one batch after
//! the other, and what is decided follows from the count before. A batch's counts are entered at
//! its end together with how far it went, and noted so; whoever judges behind that again begins
//! with the same counts and comes to the same decisions.
//!
//! **Bounded.** Of each organization the causes that were counted last are held. One that was let
//! go of is taken up again at the number that its event's own run had.

use std::collections::HashMap;

use schemas::workflow::Bound;
use schemas::{Cause, OrgId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Past so many runs that events set off one after the other, nothing more is set off.
pub(super) use domain::workflow::MAX_HOPS;

/// How often an organization is told of what one cause has not led to for one bound.
const TOLD: u8 = 3;
/// Causes of one organization in a generation; the one before is held as well.
const GENERATION: usize = 2_048;
/// Causes held in all, about.
const HELD: usize = 200_000;
/// Causes that are noted of one partition at most.
pub(super) const NOTED: usize = 8_192;

/// What has come of a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    runs: u32,
    told_hops: u8,
    told_runs: u8,
}

impl Spent {
    /// The number of what is told of a bound that is met; `None` where enough was told of it.
    fn tell(&mut self, bound: Bound) -> Option<u8> {
        let told = match bound {
            Bound::Hops => &mut self.told_hops,
            Bound::Runs => &mut self.told_runs,
        };
        let nth = *told;
        *told = TOLD.min(nth + 1);
        (nth < TOLD).then_some(nth)
    }
}

/// The counts of one organization.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Every event up to here has been judged and counted.
    through: u64,
    young: HashMap<Uuid, Spent>,
    old: HashMap<Uuid, Spent>,
}

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Ledger(HashMap<OrgId, Account>);

/// What is counted while a batch of an organization's events is judged.
#[derive(Debug, Default)]
pub(super) struct Tab {
    /// Every event up to here has been judged and counted before.
    pub(super) through: u64,
    changed: HashMap<Uuid, Spent>,
}

/// Whether an event may set a workflow off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may; with what the run goes back to.
    SetsOff(Cause),
    /// It may not: so much has come of its cause. `tell` is the number of what is told of that.
    Refused { bound: Bound, tell: Option<u8> },
}

/// An organization's counts as they are noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    org: OrgId,
    through: u64,
    /// Each with its runs, and what was told of either bound.
    causes: Vec<(Uuid, u32, u8, u8)>,
}

impl Account {
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

impl Ledger {
    /// Begins a batch of an organization's events.
    pub(super) fn open(&self, org: &OrgId) -> Tab {
        let account = self.0.get(org);
        Tab {
            through: account.map_or(0, |account| account.through),
            changed: HashMap::new(),
        }
    }

    /// Decides on an event with so many hops behind it that goes back to this cause.
    pub(super) fn judge(
        &self,
        org: &OrgId,
        tab: &mut Tab,
        (cause, hops): (Cause, u8),
        budget: u32,
    ) -> Verdict {
        let known = tab.changed.get(&cause.id).copied();
        let known = known.or_else(|| self.0.get(org)?.get(cause.id));
        let mut spent = known.unwrap_or_default();
        spent.runs = spent.runs.max(cause.runs);
        let bound = if hops >= MAX_HOPS {
            Some(Bound::Hops)
        } else {
            (spent.runs >= budget).then_some(Bound::Runs)
        };
        let verdict = if let Some(bound) = bound {
            let tell = spent.tell(bound);
            Verdict::Refused { bound, tell }
        } else {
            spent.runs += 1;
            let runs = spent.runs;
            Verdict::SetsOff(Cause { runs, ..cause })
        };
        tab.changed.insert(cause.id, spent);
        verdict
    }

    /// A batch was judged up to `through`, and what it led to stands in the log. `false` where
    /// others have counted meanwhile: then the batch is to be judged again, by what they know.
    pub(super) fn close(&mut self, org: &OrgId, tab: Tab, through: u64) -> bool {
        if tab.changed.is_empty() {
            return true;
        }
        let before = self.0.get(org).map_or(0, |account| account.through);
        if before != tab.through {
            return false;
        }
        let account = self.0.entry(org.clone()).or_default();
        account.through = through;
        for (id, spent) in tab.changed {
            account.enter(id, spent);
        }
        self.let_go();
        true
    }

    /// Lets go of the oldest causes of who holds most of them, where there are too many in all.
    fn let_go(&mut self) {
        let held: usize = self.0.values().map(Account::len).sum();
        let most = self.0.values_mut().max_by_key(|account| account.len());
        if let Some(account) = most.filter(|_| held > HELD) {
            account.old = std::mem::take(&mut account.young);
        }
    }

    /// Lets go of organizations that are others' now.
    pub(super) fn retain(&mut self, is_ours: impl Fn(&OrgId) -> bool) {
        self.0.retain(|org, _| is_ours(org));
    }

    /// What is to be noted of the organizations of each partition.
    pub(super) fn notes(&self, partition_of: impl Fn(&OrgId) -> u16) -> HashMap<u16, Vec<Noted>> {
        let mut by_partition: HashMap<u16, Vec<(&OrgId, &Account)>> = HashMap::new();
        for (org, account) in &self.0 {
            let of_partition = by_partition.entry(partition_of(org)).or_default();
            of_partition.push((org, account));
        }
        let noted = by_partition.into_iter().map(|(partition, mut accounts)| {
            accounts.sort_unstable_by_key(|(org, _)| *org);
            let most = NOTED / accounts.len().max(1);
            let noted = accounts.into_iter().map(|(org, account)| {
                let causes = account.young.iter().chain(&account.old).take(most);
                let mut causes: Vec<_> = causes
                    .map(|(id, spent)| (*id, spent.runs, spent.told_hops, spent.told_runs))
                    .collect();
                causes.sort_unstable();
                Noted {
                    org: org.clone(),
                    through: account.through,
                    causes,
                }
            });
            (partition, noted.collect())
        });
        noted.collect()
    }

    /// Takes over what was noted of a partition's organizations, and nothing else of them.
    pub(super) fn take_over(&mut self, is_of_it: impl Fn(&OrgId) -> bool, noted: Vec<Noted>) {
        self.0.retain(|org, _| !is_of_it(org));
        for noted in noted {
            let mut account = Account {
                through: noted.through,
                ..Account::default()
            };
            for (id, runs, told_hops, told_runs) in noted.causes {
                let spent = Spent {
                    runs,
                    told_hops,
                    told_runs,
                };
                account.old.insert(id, spent);
            }
            self.0.insert(noted.org, account);
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

    /// Judges a batch of events of one cause; what each comes to.
    fn batch(ledger: &mut Ledger, id: u128, events: std::ops::RangeInclusive<u64>) -> Vec<Verdict> {
        let mut tab = ledger.open(&org());
        let through = *events.end();
        let fresh = events.filter(|event| *event > tab.through).count();
        let verdicts = (0..fresh)
            .map(|_| ledger.judge(&org(), &mut tab, (cause(id), 1), BUDGET))
            .collect();
        assert!(ledger.close(&org(), tab, through));
        verdicts
    }

    fn runs(verdicts: &[Verdict]) -> Vec<u32> {
        let set_off = verdicts.iter().filter_map(|verdict| match verdict {
            Verdict::SetsOff(cause) => Some(cause.runs),
            Verdict::Refused { .. } => None,
        });
        set_off.collect()
    }

    fn noted(ledger: &Ledger) -> Ledger {
        let mut other = Ledger::default();
        let text = serde_json::to_string(&ledger.notes(|_| 7)[&7]).unwrap();
        other.take_over(|_| true, serde_json::from_str(&text).unwrap());
        other
    }

    #[test]
    fn a_cause_leads_to_no_more_than_its_budget_whoever_judges_and_how_often() {
        let mut ledger = Ledger::default();
        assert_eq!(runs(&batch(&mut ledger, 1, 1..=3)), [1, 2, 3]);
        let mut other = noted(&ledger);
        // What was judged before it was noted is not counted again, what follows is.
        let here = batch(&mut ledger, 1, 2..=9);
        assert_eq!(runs(&here), [4, 5]);
        assert_eq!(batch(&mut other, 1, 2..=9), here);
        assert_eq!(runs(&batch(&mut other, 2, 10..=11)), [1, 2]);
    }

    #[test]
    fn only_the_first_of_what_is_not_set_off_is_told() {
        let mut ledger = Ledger::default();
        batch(&mut ledger, 1, 1..=5);
        let told = |verdicts: &[Verdict]| -> Vec<u8> {
            let told = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Refused { tell, .. } => *tell,
                Verdict::SetsOff(_) => None,
            });
            told.collect()
        };
        assert_eq!(told(&batch(&mut ledger, 1, 6..=7)), [0, 1]);
        let mut other = noted(&ledger);
        assert_eq!(told(&batch(&mut other, 1, 8..=20)), [2]);
        assert_eq!(told(&batch(&mut other, 1, 21..=30)), [] as [u8; 0]);
        let mut tab = other.open(&org());
        let last_hop = other.judge(&org(), &mut tab, (cause(1), MAX_HOPS), BUDGET);
        assert_eq!(told(&[last_hop]), [0], "each bound is told of");
    }

    #[test]
    fn the_last_hop_sets_nothing_off() {
        let (ledger, mut tab) = (Ledger::default(), Tab::default());
        let mut judge = |hops| ledger.judge(&org(), &mut tab, (cause(1), hops), BUDGET);
        assert!(matches!(judge(MAX_HOPS - 1), Verdict::SetsOff(_)));
        let refused = Verdict::Refused {
            bound: Bound::Hops,
            tell: Some(0),
        };
        assert_eq!(judge(MAX_HOPS), refused);
    }

    #[test]
    fn what_is_held_and_noted_is_bounded_and_what_was_let_go_of_is_not_forgotten() {
        let mut ledger = Ledger::default();
        for id in 1..=3 * GENERATION as u64 {
            batch(&mut ledger, id.into(), id..=id);
        }
        assert!(ledger.0[&org()].len() <= 2 * GENERATION);
        let text = serde_json::to_string(&ledger.notes(|_| 7)).unwrap();
        assert!(text.len() < NOTED * 50, "{}", text.len());
        let mut tab = ledger.open(&org());
        let late = Cause {
            runs: BUDGET,
            ..cause(1)
        };
        let verdict = ledger.judge(&org(), &mut tab, (late, 1), BUDGET);
        assert!(matches!(verdict, Verdict::Refused { .. }), "{verdict:?}");
    }

    #[test]
    fn a_batch_that_ends_after_its_organization_went_counts_nothing() {
        let mut ledger = Ledger::default();
        batch(&mut ledger, 1, 1..=3);
        let mut tab = ledger.open(&org());
        ledger.judge(&org(), &mut tab, (cause(1), 1), BUDGET);
        ledger.retain(|_| false);
        assert!(!ledger.close(&org(), tab, 4));
        assert!(ledger.0.is_empty());
    }
}
