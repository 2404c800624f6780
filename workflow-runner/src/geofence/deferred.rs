//! Positions that wait to be considered again.
//!
//! While the log is slow, it takes little from an organization that writes much. Where a position
//! cannot be considered at the places of such an organization, only that waits here, and all others
//! go on. What a person sends later waits behind it, at the same organization: crossings follow
//! from positions in their order. Only sequences are held, and the log is read again.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use schemas::{AccountId, OrgId};

/// Positions that are held. With as many, all others wait until some have been considered.
const MOST: usize = 500_000;
/// Persons of an organization that are considered again at a time, and positions of each.
const PERSONS: usize = 64;
const POSITIONS: usize = 16;
/// Approximate memory of a position, and of a person besides.
const POSITION_BYTES: usize = 16;
const PERSON_BYTES: usize = 256;

/// Positions that wait, by the organization at which they do.
#[derive(Debug, Default)]
pub(super) struct DeferredPositions {
    by_org: BTreeMap<OrgId, OfOrg>,
    /// The organizations at which positions of a person wait.
    orgs: HashMap<AccountId, BTreeSet<OrgId>>,
    positions: usize,
    /// The organization of the last round.
    last: Option<OrgId>,
}

#[derive(Debug, Default)]
struct OfOrg {
    persons: BTreeMap<AccountId, Waiting>,
    /// The last person of the last round.
    last: Option<AccountId>,
    /// Whether a round of it is in progress.
    is_busy: bool,
}

#[derive(Debug)]
struct Waiting {
    partition: u16,
    positions: VecDeque<u64>,
}

/// A position to be deferred at an organization.
#[derive(Debug)]
pub(super) struct DeferredPosition {
    pub(super) org: OrgId,
    pub(super) account: AccountId,
    /// The person's partition.
    pub(super) partition: u16,
    pub(super) sequence: u64,
}

/// Positions to be considered again at the places of one organization.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) org: OrgId,
    pub(super) persons: Vec<Again>,
}

/// A person's first positions of a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) account: AccountId,
    pub(super) partition: u16,
    pub(super) positions: Vec<u64>,
}

impl DeferredPositions {
    /// The organizations at which earlier positions of a person wait.
    pub(super) fn of(&self, account: AccountId) -> BTreeSet<OrgId> {
        self.orgs.get(&account).cloned().unwrap_or_default()
    }

    /// Defers a position, behind the person's earlier ones.
    pub(super) fn push(&mut self, one: DeferredPosition) {
        let DeferredPosition {
            org,
            account,
            partition,
            sequence,
        } = one;
        let of_org = self.by_org.entry(org.clone()).or_default();
        let waiting = of_org.persons.entry(account).or_insert_with(|| Waiting {
            partition,
            positions: VecDeque::new(),
        });
        if waiting.positions.is_empty() {
            self.orgs.entry(account).or_default().insert(org);
        }
        waiting.positions.push_back(sequence);
        self.positions += 1;
    }

    /// Whether there is no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.positions >= MOST
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.positions * POSITION_BYTES + self.orgs.len() * PERSON_BYTES
    }

    /// The next round: of the organization whose turn it is, among those without one in progress.
    pub(super) fn next(&mut self) -> Option<Round> {
        let behind = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.by_org.range::<OrgId, _>((behind, Bound::Unbounded));
        let mut turns = rest.chain(&self.by_org);
        let (org, _) = turns.find(|(_, of_org)| !of_org.is_busy)?;
        let org = org.clone();
        let persons = self.by_org.get_mut(&org)?.begin();
        self.last = Some(org.clone());
        Some(Round { org, persons })
    }

    /// Ends an organization's round, in which persons' positions were considered up to these
    /// sequences.
    pub(super) fn ended(&mut self, org: &OrgId, considered: &[(AccountId, u64)]) {
        let Some(of_org) = self.by_org.get_mut(org) else {
            return;
        };
        of_org.is_busy = false;
        let mut done = Vec::new();
        for (account, through) in considered {
            let Some(waiting) = of_org.persons.get_mut(account) else {
                continue;
            };
            let before = waiting.positions.len();
            waiting.positions.retain(|position| position > through);
            self.positions -= before - waiting.positions.len();
            if waiting.positions.is_empty() {
                of_org.persons.remove(account);
                done.push((org.clone(), *account));
            }
        }
        if of_org.persons.is_empty() {
            self.by_org.remove(org);
        }
        self.let_go(done);
    }

    /// Drops the persons of partitions that are no longer ours.
    pub(super) fn retain(&mut self, is_ours: impl Fn(u16) -> bool) {
        let mut gone = Vec::new();
        for (org, of_org) in &mut self.by_org {
            let is_gone = |_: &AccountId, waiting: &mut Waiting| !is_ours(waiting.partition);
            for (account, waiting) in of_org.persons.extract_if(.., is_gone) {
                self.positions -= waiting.positions.len();
                gone.push((org.clone(), account));
            }
        }
        // One with a round in progress has no other at the same time.
        self.by_org
            .retain(|_, of_org| of_org.is_busy || !of_org.persons.is_empty());
        self.let_go(gone);
    }

    fn let_go(&mut self, persons: Vec<(OrgId, AccountId)>) {
        for (org, account) in persons {
            if let Some(orgs) = self.orgs.get_mut(&account) {
                orgs.remove(&org);
                if orgs.is_empty() {
                    self.orgs.remove(&account);
                }
            }
        }
    }

    /// The first position that waits in each partition.
    pub(super) fn firsts(&self) -> BTreeMap<u16, u64> {
        let mut firsts = BTreeMap::new();
        let orgs = self.by_org.values();
        for waiting in orgs.flat_map(|of_org| of_org.persons.values()) {
            if let Some(first) = waiting.positions.front() {
                let known = firsts.entry(waiting.partition).or_insert(*first);
                *known = (*known).min(*first);
            }
        }
        firsts
    }
}

impl OfOrg {
    /// The persons of the next round, each in turn.
    fn begin(&mut self) -> Vec<Again> {
        self.is_busy = true;
        let behind = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.persons.range((behind, Bound::Unbounded));
        let turns = rest.chain(&self.persons);
        let persons: Vec<Again> = turns
            .take(PERSONS.min(self.persons.len()))
            .map(|(account, waiting)| Again {
                account: *account,
                partition: waiting.partition,
                positions: waiting.positions.iter().copied().take(POSITIONS).collect(),
            })
            .collect();
        self.last = persons.last().map(|last| last.account);
        persons
    }
}

#[cfg(test)]
#[path = "deferred_tests.rs"]
mod tests;
