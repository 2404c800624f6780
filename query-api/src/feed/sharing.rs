//! Which persons' events an organization sees: those of members of its circles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::circles::{Circles, Viewer};
use event_log::{EventLog, Item, Page, ReadError};
use futures::future::try_join_all;
use schemas::{AccountId, AggregateType, Event, Log, OrgId, Recorded, StreamId};

/// Events of circles, or of accounts, per page.
const PAGE: usize = 1_000;
/// Members whose last events are read with one request.
const LASTS: usize = 999;
/// Accounts read concurrently.
const SIDE_BY_SIDE: usize = 32;
/// What a read and each event that it returns count as, in bytes: about what they take on their
/// way.
const READ_BYTES: usize = 1_024;
const EVENT_BYTES: usize = 1_024;
/// What is held for an organization, and at most for an event of a circle or of a member.
const BASE_HELD_BYTES: usize = 1_024;
const EVENT_HELD_BYTES: usize = 512;

/// The organization's circles and the visibility of their members. A clone stays as it is while
/// the original is updated.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    viewer: Viewer,
    org: OrgId,
    known: Arc<Known>,
    /// The last applied sequence of circles, and of accounts.
    circles_through: u64,
    accounts_through: u64,
    /// Everything up to this sequence is applied.
    end: u64,
    /// How many events were applied.
    applied: usize,
}

#[derive(Clone, Debug, Default)]
struct Known {
    circles: Circles,
    /// All current and former members, each with the last applied sequence of their account.
    members: BTreeMap<AccountId, u64>,
}

/// What is left to read of an account, judging by its last event.
enum Left<'e> {
    Nothing,
    /// The last event says all.
    Last(&'e Recorded),
    /// All events after this sequence.
    After(u64),
}

impl Sharing {
    /// Nothing is known yet.
    pub(super) fn new(org: &OrgId) -> Self {
        Self {
            viewer: Viewer::Organization(org.clone()),
            org: org.clone(),
            known: Arc::default(),
            circles_through: 0,
            accounts_through: 0,
            end: 0,
            applied: 0,
        }
    }

    /// Applies all events up to `end`, a recent end of the log ([`EventLog::end_for_reader`]).
    /// Members who have left or hide are no longer seen. Progress is kept if the wait for it is
    /// cancelled.
    pub(super) async fn catch_up(&mut self, log: &EventLog, end: u64) -> Result<(), ReadError> {
        if end > self.end {
            self.take_in_accounts(log, end).await?;
            self.take_in_circles(log).await?;
            self.end = end;
        }
        Ok(())
    }

    /// Whether the organization sees this event now, by the same rules as for sockets and webhooks.
    pub(super) fn sees(&self, recorded: &Recorded, now: DateTime<Utc>) -> bool {
        let circles = &self.known.circles;
        circles.shows(&self.viewer, &recorded.event, now)
    }

    /// The organization.
    pub(super) fn org(&self) -> &OrgId {
        &self.org
    }

    /// All current and former members.
    pub(super) fn members(&self) -> impl ExactSizeIterator<Item = AccountId> {
        self.known.members.keys().copied()
    }

    /// Whether a person is or was a member.
    pub(super) fn knows(&self, member: AccountId) -> bool {
        self.known.members.contains_key(&member)
    }

    /// The sequence up to which all events of circles are applied.
    pub(super) fn circles_through(&self) -> u64 {
        self.circles_through
    }

    /// The approximate size of what is held.
    pub(super) fn bytes(&self) -> usize {
        BASE_HELD_BYTES + self.applied * EVENT_HELD_BYTES
    }

    async fn take_in_circles(&mut self, log: &EventLog) -> Result<(), ReadError> {
        loop {
            let (kind, after) = (Some(AggregateType::Circle), self.circles_through);
            let page = log.page(Log::Events, &self.org, kind, after, PAGE).await?;
            self.charge(log, 1, page.items.len());
            let newcomers = self.newcomers(&page);
            self.take_in_members(log, &newcomers).await?;
            for recorded in page.events() {
                self.apply(recorded);
            }
            self.circles_through = page.through;
            if page.complete {
                return Ok(());
            }
        }
    }

    /// The persons who join according to these events and are not known yet.
    fn newcomers(&self, page: &Page) -> Vec<AccountId> {
        let joined = page.events().filter_map(|recorded| match &recorded.event {
            Event::CircleMemberJoined(member) => Some(member.user_id),
            _ => None,
        });
        let new: BTreeSet<_> = joined.filter(|member| !self.knows(*member)).collect();
        new.into_iter().collect()
    }

    /// Applies what members have said since. Everybody's accounts are read for it, as long as that
    /// takes no more requests than to look at each member's.
    async fn take_in_accounts(&mut self, log: &EventLog, end: u64) -> Result<(), ReadError> {
        for _ in 0..most_pages(self.known.members.len()) {
            let (kind, after) = (AggregateType::Account, self.accounts_through);
            let page = log.page_of_kind(kind, after, PAGE).await?;
            self.charge(log, 1, page.items.len());
            for recorded in page.events() {
                self.take_in_account(recorded);
            }
            self.accounts_through = page.through;
            if page.complete {
                return Ok(());
            }
        }
        let members: Vec<_> = self.members().collect();
        self.take_in_members(log, &members).await?;
        self.accounts_through = self.accounts_through.max(end);
        Ok(())
    }

    /// Applies an event of a member's account, once.
    fn take_in_account(&mut self, recorded: &Recorded) {
        let Ok(member) = recorded.stream.id.parse().map(AccountId) else {
            return;
        };
        let through = self.known.members.get(&member);
        if through.is_some_and(|through| recorded.sequence > *through) {
            self.apply(recorded);
            self.know(member, recorded.sequence);
        }
    }

    /// Applies what members have said about being seen since they were last looked at; of new ones,
    /// all that they have said. A member is known only with all of it, even if the wait for it is
    /// cancelled.
    async fn take_in_members(
        &mut self,
        log: &EventLog,
        members: &[AccountId],
    ) -> Result<(), ReadError> {
        for some in members.chunks(LASTS) {
            let behind = self.take_in_lasts(log, some).await?;
            for some in behind.chunks(SIDE_BY_SIDE) {
                self.take_in_pages(log, some.to_vec()).await?;
            }
        }
        Ok(())
    }

    /// Applies the last events of those members' accounts of which nothing else is left to read,
    /// and returns the others, each with the sequence to read after.
    async fn take_in_lasts(
        &mut self,
        log: &EventLog,
        members: &[AccountId],
    ) -> Result<Vec<(AccountId, u64)>, ReadError> {
        let accounts = members.iter().copied().map(StreamId::of_account);
        let accounts: Vec<_> = accounts.collect();
        let lasts = log.last_of_each_for_reader(&accounts).await?;
        self.charge(log, 1, lasts.len());
        let mut behind = Vec::new();
        for (member, last) in members.iter().zip(&lasts) {
            let through = self.known.members.get(member).copied().unwrap_or(0);
            match left_after(through, last.as_ref()) {
                Left::Nothing => self.know(*member, through),
                Left::Last(last) => {
                    self.apply(last);
                    self.know(*member, last.sequence);
                }
                Left::After(through) => behind.push((*member, through)),
            }
        }
        Ok(behind)
    }

    /// Applies what follows in some members' accounts, side by side. However much it is, no more
    /// than a page of each is held.
    async fn take_in_pages(
        &mut self,
        log: &EventLog,
        mut behind: Vec<(AccountId, u64)>,
    ) -> Result<(), ReadError> {
        while !behind.is_empty() {
            let reads: Vec<_> = behind
                .iter()
                .map(|(member, after)| page_of(log.clone(), *member, *after))
                .collect();
            let pages = try_join_all(reads).await?;
            let mut further = Vec::new();
            for ((member, _), page) in behind.into_iter().zip(pages) {
                self.charge(log, 1, page.items.len());
                for recorded in page.events() {
                    self.apply(recorded);
                }
                if page.complete {
                    self.know(member, page.through);
                } else {
                    further.push((member, page.through));
                }
            }
            behind = further;
        }
        Ok(())
    }

    /// Applies an event. Applying it twice has no further effect.
    fn apply(&mut self, recorded: &Recorded) {
        Arc::make_mut(&mut self.known).circles.apply(recorded);
        self.applied += 1;
    }

    /// Records that all of a member's account is applied up to a sequence.
    fn know(&mut self, member: AccountId, through: u64) {
        if self.known.members.get(&member) != Some(&through) {
            let known = Arc::make_mut(&mut self.known);
            known.members.insert(member, through);
        }
    }

    /// Counts what was read as read by the organization, which gives way to others accordingly.
    fn charge(&self, log: &EventLog, reads: usize, events: usize) {
        log.count_read(&self.org, cost(reads, events));
    }
}

/// How many pages of everybody's accounts are read before the members' own are looked at instead.
/// Without members, none: no account matters then, and that of who joins later is read whole.
fn most_pages(members: usize) -> usize {
    members.div_ceil(LASTS)
}

/// What is left to read of an account that was read up to a sequence, or never (0).
fn left_after(through: u64, last: Option<&Recorded>) -> Left<'_> {
    let Some(last) = last.filter(|last| last.sequence > through) else {
        return Left::Nothing;
    };
    match &last.event {
        // Nothing that came before matters any more.
        Event::AccountForgotten(_) => Left::Last(last),
        // Nothing came before.
        Event::AccountRegistered(_) if through == 0 => Left::Last(last),
        _ => Left::After(through),
    }
}

/// Reads a page of an account. An event that cannot be read may be one that hides its person.
async fn page_of(log: EventLog, account: AccountId, after: u64) -> Result<Page, ReadError> {
    let stream = StreamId::of_account(account);
    let page = log.page_of(&stream, after, PAGE).await?;
    for item in &page.items {
        if let Item::Undecodable {
            sequence, reason, ..
        } = item
        {
            return Err(ReadError::Undecodable {
                sequence: *sequence,
                reason: reason.clone(),
            });
        }
    }
    Ok(page)
}

/// What reads cost that returned so many events, in bytes.
fn cost(reads: usize, events: usize) -> usize {
    reads * READ_BYTES + events * EVENT_BYTES
}

#[cfg(test)]
mod tests;
