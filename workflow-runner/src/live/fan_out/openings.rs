//! How subscriptions begin: with the channel's latest state, and with every event after it.

use chrono::TimeDelta;
use domain::circles::Viewer;
use event_log::{Page, ReadError};
use futures::future::join_all;
use schemas::{AccountId, AggregateType, OrgId, SYSTEM_ORG};

use super::super::calls::{Call, LAST};
use super::super::channel::Channel;
use super::super::latest::Asking;
use super::super::snapshot::{Candidate, connected};
use super::super::subscriber::Subscriber;
use super::{FanOut, SIDE_BY_SIDE, lock};
use crate::retry::retry_while;

/// Calls for help from before the start are read back to these times, so that the newest are known
/// if there are too many.
const BACK: [TimeDelta; 3] = [TimeDelta::minutes(15), TimeDelta::hours(2), LAST];
/// Events of such calls that are read at most.
const MOST_EVENTS: usize = 20_000;
/// Events read at a time.
const PAGE: usize = 500;

impl FanOut {
    /// Lets a subscriber take the channel's events from now on; returns the sequence they follow.
    pub(in crate::live) fn open(
        &self,
        subscriber: &Subscriber,
        number: u64,
        channel: Channel,
    ) -> u64 {
        let mut state = lock(&self.0.state);
        subscriber.open(number, channel);
        *state.heads.of(channel.log())
    }

    /// The same for positions, with the newest of those whom the viewer could see.
    pub(in crate::live) async fn open_with_latest(
        &self,
        subscriber: &Subscriber,
        number: u64,
    ) -> (u64, Vec<Candidate>) {
        let asks = Asks::begin(self);
        loop {
            let lacking = match self.open_if_known(subscriber, number, asks.asking) {
                Ok(opened) => return opened,
                Err(lacking) => lacking,
            };
            for some in lacking.chunks(SIDE_BY_SIDE) {
                let past = some.iter().map(|account| self.0.people.newest(*account));
                let past = join_all(past).await;
                let mut state = lock(&self.0.state);
                for (account, past) in some.iter().zip(past) {
                    state.latest.learn(*account, past);
                }
            }
        }
    }

    /// Opens if the newest positions of all are known; otherwise returns whose must be read first.
    fn open_if_known(
        &self,
        subscriber: &Subscriber,
        number: u64,
        asking: Asking,
    ) -> Result<(u64, Vec<Candidate>), Vec<AccountId>> {
        let mut state = lock(&self.0.state);
        let viewer = subscriber.viewer();
        let persons = self
            .0
            .people
            .read(|directory| connected(viewer, directory.circles()));
        let lacking = state.latest.lacking(asking, persons.iter().copied());
        if !lacking.is_empty() {
            return Err(lacking);
        }
        subscriber.open(number, Channel::Locations);
        let latest = |account, own| state.latest.of(account, own);
        let candidates = Candidate::of(viewer, persons, latest);
        Ok((state.heads.locations, candidates))
    }

    /// The same for calls for help, with the open ones of those whom the viewer could see.
    pub(in crate::live) async fn open_with_calls(
        &self,
        subscriber: &Subscriber,
        number: u64,
    ) -> (u64, Vec<Call>) {
        let mut known = self.0.calls_known.subscribe();
        // The sender is there as long as this.
        drop(known.wait_for(|known| *known).await);
        let (viewer, since) = (subscriber.viewer(), self.0.clock.now() - LAST);
        let state = lock(&self.0.state);
        let persons = self
            .0
            .people
            .read(|directory| connected(viewer, directory.circles()));
        subscriber.open(number, Channel::Sos);
        let part = match viewer {
            Viewer::Account(_) => OrgId::from(SYSTEM_ORG),
            Viewer::Organization(org) => org.clone(),
        };
        (state.heads.events, state.calls.of(&part, persons, since))
    }

    /// Reads the calls for help that were made before this process began to follow the log.
    pub(in crate::live) async fn learn_calls(&self) {
        let (mut until, mut left) = (u64::MAX, MOST_EVENTS);
        for back in BACK {
            match self.learn_calls_of(back, until, left).await {
                Ok(reached) => (until, left) = reached,
                Err(error) => {
                    tracing::error!(%error, "Earlier calls for help cannot be read");
                    break;
                }
            }
        }
        lock(&self.0.state).calls.past_is_known();
        self.0.calls_known.send_replace(true);
    }

    /// Reads the calls of so long, before the sequence `until` and at most `left` events; returns
    /// the sequence of the first, and how many are left.
    async fn learn_calls_of(
        &self,
        back: TimeDelta,
        until: u64,
        mut left: usize,
    ) -> Result<(u64, usize), ReadError> {
        let (log, kind) = (&self.0.log, AggregateType::Sos);
        let since = self.0.clock.now() - back;
        let find = || log.first_of_kind_since(kind, since);
        let first = retry_while(find, ReadError::passes).await?;
        let Some(first) = first.filter(|first| *first < until) else {
            return Ok((until, left));
        };
        let mut after = first.saturating_sub(1);
        while left > 0 {
            let read = || log.catch_up().page_of_kind(kind, after, PAGE);
            let page = retry_while(read, ReadError::passes).await?;
            self.take_calls(&page, until);
            left = left.saturating_sub(page.items.len());
            after = page.through;
            if page.complete || after.saturating_add(1) >= until {
                break;
            }
        }
        Ok((first, left))
    }

    fn take_calls(&self, page: &Page, until: u64) {
        let mut state = lock(&self.0.state);
        let earlier = page.events().filter(|recorded| recorded.sequence < until);
        for recorded in earlier {
            state.calls.take(recorded);
        }
    }
}

/// A request for newest positions, until it is dropped, answered or not.
struct Asks<'l> {
    fan_out: &'l FanOut,
    asking: Asking,
}

impl<'l> Asks<'l> {
    fn begin(fan_out: &'l FanOut) -> Self {
        let asking = lock(&fan_out.0.state).latest.ask();
        Self { fan_out, asking }
    }
}

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        lock(&self.fan_out.0.state).latest.answered(self.asking);
    }
}
