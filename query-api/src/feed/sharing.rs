//! Which persons' events an organization sees: those of members of its circles.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::circles::{Circles, Viewer};
use event_log::{EventLog, ReadError, Tail, Whose};
use futures::future::try_join_all;
use schemas::{AccountId, AggregateType, Event, Log, OrgId, Recorded, StreamId};

/// Events of circles per page.
const PAGE: usize = 1_000;
/// Accounts read concurrently.
const SIDE_BY_SIDE: usize = 32;
/// Up to this many members are followed individually. Beyond that, all positions are scanned.
const BY_NAME: usize = 200;

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

    /// Follows the positions after `after`. If the feed continues (`end` is none), people may join
    /// who are not members yet.
    pub(super) async fn tail(
        &self,
        log: &EventLog,
        after: u64,
        end: Option<u64>,
    ) -> Result<Tail, ReadError> {
        let by_name = 1..=BY_NAME;
        if end.is_some() && by_name.contains(&self.members.len()) {
            let tracks: Vec<_> = self
                .members
                .keys()
                .map(|member| StreamId::of_track(*member))
                .collect();
            let whose = Whose::Aggregates(&tracks);
            return log.read_for(Log::Locations, whose, after).await;
        }
        let whose = Whose::Kind(AggregateType::Track);
        log.read_for(Log::Locations, whose, after).await
    }

    async fn take_in_circles(&mut self, log: &EventLog) -> Result<(), ReadError> {
        loop {
            let (kind, after) = (Some(AggregateType::Circle), self.circles_through);
            let page = log.page(Log::Events, &self.org, kind, after, PAGE).await?;
            let mut joined = Vec::new();
            for recorded in page.events() {
                self.circles.apply(recorded);
                if let Event::CircleMemberJoined(member) = &recorded.event
                    && self.members.insert(member.user_id, 0).is_none()
                {
                    joined.push(member.user_id);
                }
            }
            self.take_in_members(log, &joined).await?;
            self.circles_through = page.through;
            if page.complete {
                return Ok(());
            }
        }
    }

    /// Applies what new members have said about being seen so far.
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
            for events in try_join_all(loads).await? {
                for recorded in &events {
                    self.take_in_account(recorded);
                }
            }
        }
        Ok(())
    }

    /// Applies what members have said since.
    async fn take_in_accounts(&mut self, log: &EventLog) -> Result<(), ReadError> {
        loop {
            let (kind, after) = (AggregateType::Account, self.accounts_through);
            let page = log.page_of_kind(kind, after, PAGE).await?;
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
}

async fn load(log: EventLog, account: AccountId) -> Result<Vec<Recorded>, ReadError> {
    log.load(&StreamId::of_account(account)).await
}
