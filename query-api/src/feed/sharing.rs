//! Which persons' events an organization sees: those of members of its circles.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::circles::{Circles, Viewer};
use event_log::{EventLog, Page, ReadError};
use futures::future::try_join_all;
use schemas::{AccountId, AggregateType, Event, Log, OrgId, Recorded, StreamId};

/// Events of circles per page.
const PAGE: usize = 1_000;
/// Accounts read concurrently.
const SIDE_BY_SIDE: usize = 32;
/// What a read and each event that it returns count as, in bytes: about what they take on their
/// way.
const READ_BYTES: usize = 1_024;
const EVENT_BYTES: usize = 1_024;

/// The organization's circles and the visibility of their members.
pub(super) struct Sharing {
    viewer: Viewer,
    org: OrgId,
    circles: Circles,
    /// All current and former members, each with the last applied sequence of their account.
    members: BTreeMap<AccountId, u64>,
    /// The last applied sequence of circles, and of accounts.
    circles_through: u64,
    accounts_through: u64,
    /// The last known end of the log.
    end: u64,
}

impl Sharing {
    pub(super) async fn load(log: &EventLog, org: &OrgId) -> Result<Self, ReadError> {
        let mut sharing = Self {
            viewer: Viewer::Organization(org.clone()),
            org: org.clone(),
            circles: Circles::default(),
            members: BTreeMap::new(),
            circles_through: 0,
            accounts_through: 0,
            end: log.end(Log::Events).await?.sequence(),
        };
        sharing.accounts_through = sharing.end;
        sharing.take_in_circles(log).await?;
        Ok(sharing)
    }

    /// Applies all events stored by now. Members who have left or hide are no longer seen.
    pub(super) async fn catch_up(&mut self, log: &EventLog) -> Result<(), ReadError> {
        let end = log.end(Log::Events).await?.sequence();
        if end != self.end {
            self.take_in_accounts(log).await?;
            self.take_in_circles(log).await?;
            self.end = end;
        }
        Ok(())
    }

    /// Whether the organization sees this event now, by the same rules as for sockets and webhooks.
    pub(super) fn sees(&self, recorded: &Recorded, now: DateTime<Utc>) -> bool {
        self.circles.shows(&self.viewer, &recorded.event, now)
    }

    /// The organization.
    pub(super) fn org(&self) -> &OrgId {
        &self.org
    }

    /// All current and former members.
    pub(super) fn members(&self) -> impl ExactSizeIterator<Item = AccountId> {
        self.members.keys().copied()
    }

    /// Whether a person is or was a member.
    pub(super) fn knows(&self, member: AccountId) -> bool {
        self.members.contains_key(&member)
    }

    /// The sequence up to which all events of circles are applied.
    pub(super) fn circles_through(&self) -> u64 {
        self.circles_through
    }

    async fn take_in_circles(&mut self, log: &EventLog) -> Result<(), ReadError> {
        loop {
            let (kind, after) = (Some(AggregateType::Circle), self.circles_through);
            let page = log.page(Log::Events, &self.org, kind, after, PAGE).await?;
            self.charge(log, 1, page.items.len());
            let newcomers = self.newcomers(&page);
            self.take_in_members(log, &newcomers).await?;
            for recorded in page.events() {
                self.circles.apply(recorded);
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

    /// Applies what new members have said about being seen so far. A member is known only with all
    /// of it, even if the wait for it is cancelled.
    async fn take_in_members(
        &mut self,
        log: &EventLog,
        joined: &[AccountId],
    ) -> Result<(), ReadError> {
        for some in joined.chunks(SIDE_BY_SIDE) {
            let loads: Vec<_> = some
                .iter()
                .map(|member| load(log.clone(), *member))
                .collect();
            let loaded = try_join_all(loads).await?;
            let events: usize = loaded.iter().map(Vec::len).sum();
            self.charge(log, loaded.len(), events);
            self.members.extend(some.iter().map(|member| (*member, 0)));
            for recorded in loaded.iter().flatten() {
                self.take_in_account(recorded);
            }
        }
        Ok(())
    }

    /// Applies what members have said since.
    async fn take_in_accounts(&mut self, log: &EventLog) -> Result<(), ReadError> {
        loop {
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
    }

    /// Applies an event of a member's account, once.
    fn take_in_account(&mut self, recorded: &Recorded) {
        let member = recorded.stream.id.parse().map(AccountId);
        let Ok(Some(through)) = member.map(|member| self.members.get_mut(&member)) else {
            return;
        };
        if recorded.sequence > *through {
            *through = recorded.sequence;
            self.circles.apply(recorded);
        }
    }

    /// Counts what was read as read by the organization, which gives way to others accordingly.
    fn charge(&self, log: &EventLog, reads: usize, events: usize) {
        log.count_read(&self.org, cost(reads, events));
    }
}

/// What reads cost that returned so many events, in bytes.
fn cost(reads: usize, events: usize) -> usize {
    reads * READ_BYTES + events * EVENT_BYTES
}

async fn load(log: EventLog, account: AccountId) -> Result<Vec<Recorded>, ReadError> {
    log.load(&StreamId::of_account(account)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_whose_account_is_read_is_paid_for() {
        assert_eq!(cost(0, 0), 0);
        // An account that was only registered.
        let one = cost(1, 1);
        assert!(one > 0);
        assert_eq!(cost(10_000, 10_000), 10_000 * one);
        assert!(cost(1, 1_000) > 500 * one);
    }
}
