//! One connection once its client is known, to its end.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use event_log::{Position, PositionError};
use schemas::Log;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::Live;
use super::auth::Viewer;
use super::budget::Budget;
use super::channel::Channel;
use super::close::CloseReason;
use super::frames::{Malformed, Reply, Request};
use super::hub::{Hub, Membership};
use super::subscription::{Fetch, Fetched, Next, Subscription};
use super::wire::{Heard, Wire};

/// Subscriptions of one connection.
const MAX_SUBSCRIPTIONS: usize = 16;
/// How long a page that could not be read is let rest before the next attempt.
const FETCH_AGAIN: Duration = Duration::from_millis(500);

/// Why a session ends: with a reason to tell, or because the client has gone.
pub(super) type Ended = Option<CloseReason>;

/// A connection whose client is known.
pub(super) struct Session {
    live: Live,
    wire: Wire,
    viewer: Viewer,
    member: Membership,
    subscriptions: Vec<Subscription>,
    next_number: u64,
    /// Which subscription is asked first, so that a loud one does not silence the others.
    turn: usize,
    fetching: Option<Pin<Box<dyn Future<Output = Fetched> + Send>>>,
    expiry: Option<Pin<Box<Sleep>>>,
    ping: Interval,
    budget: Budget,
}

impl Session {
    pub(super) fn new(live: Live, wire: Wire, viewer: Viewer, budget: Budget) -> Self {
        let every = live.settings.ping_interval;
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            member: live.hub.join(viewer.org()),
            expiry: live.expiry(&viewer),
            live,
            wire,
            viewer,
            subscriptions: Vec::new(),
            next_number: 0,
            turn: 0,
            fetching: None,
            ping,
            budget,
        }
    }

    /// Serves the client until one side ends it; gives back the connection, and why.
    pub(super) async fn run(mut self) -> (Wire, Ended) {
        let mut closing = pin!(self.live.closing.clone().cancelled_owned());
        self.wire.send(Reply::Ready.to_text());
        // From here on the hub tells of revocations; one from before is seen now.
        let mut step = self.check_key();
        while step.is_ok() {
            self.fill();
            step = tokio::select! {
                heard = self.wire.next() => self.hear(heard).await,
                fetched = wait_for(&mut self.fetching) => {
                    self.take(fetched);
                    Ok(())
                }
                () = self.member.changed() => self.check_revoked(),
                _ = self.ping.tick() => self.beat(),
                () = wait_for(&mut self.expiry) => Err(Some(CloseReason::TokenEnded)),
                () = &mut closing => Err(Some(self.live.closing_reason())),
            };
        }
        (self.wire, step.err().flatten())
    }

    /// Gives one subscription the word, once all that was said before has been sent.
    fn fill(&mut self) {
        let count = self.subscriptions.len();
        if !self.wire.is_idle() {
            return;
        }
        for offset in 0..count {
            let nth = (self.turn + offset) % count;
            match self.subscriptions[nth].advance(&self.member) {
                Next::Frames(frames) => {
                    self.turn = nth + 1;
                    return self.send_events(frames);
                }
                Next::Fetch(fetch) if self.fetching.is_none() => {
                    self.turn = nth + 1;
                    self.fetch(fetch, Duration::ZERO);
                }
                Next::Fetch(_) | Next::Wait => {}
            }
        }
    }

    fn send_events(&mut self, frames: Vec<String>) {
        metrics::counter!("waypost_ws_events_total").increment(frames.len() as u64);
        for frame in frames {
            self.wire.send(frame);
        }
    }

    fn fetch(&mut self, fetch: Fetch, after: Duration) {
        let turns = self.live.replays.clone();
        self.fetching = Some(Box::pin(async move {
            if !after.is_zero() {
                sleep(after).await;
            }
            fetch.read(turns).await
        }));
    }

    fn take(&mut self, fetched: Fetched) {
        self.fetching = None;
        metrics::counter!("waypost_ws_replay_pages_total").increment(1);
        let number = fetched.number;
        let of_it = |subscription: &&mut Subscription| subscription.number == number;
        let Some(subscription) = self.subscriptions.iter_mut().find(of_it) else {
            return;
        };
        match fetched.page {
            Ok(page) => {
                let frames = subscription.take(self.live.hub.log(), &page, fetched.head_before);
                self.send_events(frames);
            }
            Err(error) => {
                tracing::warn!(%error, "A socket's replay waits for the log");
                if let Next::Fetch(again) = subscription.advance(&self.member) {
                    self.fetch(again, FETCH_AGAIN);
                }
            }
        }
    }

    /// Keeps a live client and gives up a dead one.
    fn beat(&mut self) -> Result<(), Ended> {
        if self.wire.silence() * 2 > self.live.settings.ping_interval * 5 {
            let reason = if self.wire.is_idle() {
                CloseReason::Silent
            } else {
                CloseReason::Stalled
            };
            return Err(Some(reason));
        }
        self.wire.ping();
        self.check_key()
    }

    fn check_revoked(&self) -> Result<(), Ended> {
        if self.member.has_revoked(self.viewer.key()) {
            return Err(Some(CloseReason::TokenEnded));
        }
        Ok(())
    }

    fn check_key(&self) -> Result<(), Ended> {
        if self.live.still_admits(&self.viewer) {
            return Ok(());
        }
        Err(Some(CloseReason::TokenEnded))
    }

    async fn hear(&mut self, heard: Heard) -> Result<(), Ended> {
        let request = match heard {
            Heard::Sent => return Ok(()),
            Heard::Gone => return Err(None),
            Heard::Unreadable => return Err(Some(CloseReason::BadFrame)),
            Heard::Text(text) => Request::parse(&text),
            Heard::Binary => Err(Malformed::binary()),
        };
        let abuse = Err(Some(CloseReason::Abuse));
        if !self.budget.take_frame(Instant::now()) {
            return abuse;
        }
        let answered = match request {
            Ok(Request::Auth { token }) => self.renew(&token)?,
            Ok(Request::Subscribe { id, channel, after }) => {
                self.subscribe(id, &channel, after).await
            }
            Ok(Request::Unsubscribe { id }) => self.unsubscribe(id),
            Err(malformed) => Err(malformed),
        };
        if let Err(Malformed { id, error }) = answered {
            let (id, error) = (id.as_deref(), error.as_str());
            self.wire.send(Reply::Error { id, error }.to_text());
            if !self.budget.take_malformed(Instant::now()) {
                return abuse;
            }
        }
        Ok(())
    }

    /// Goes on under another token of the same organization.
    fn renew(&mut self, token: &str) -> Result<Result<(), Malformed>, Ended> {
        let viewer = self.live.readmit(token).map_err(Some)?;
        if viewer.org() != self.viewer.org() {
            let error = "the token belongs to another organization: open another connection";
            return Ok(Err(Malformed::new(None, error)));
        }
        self.expiry = self.live.expiry(&viewer);
        self.viewer = viewer;
        self.wire.send(Reply::Ready.to_text());
        Ok(Ok(()))
    }

    async fn subscribe(
        &mut self,
        id: String,
        channel: &str,
        after: Option<String>,
    ) -> Result<(), Malformed> {
        let wrong = |error: String| Malformed::new(Some(id.clone()), error);
        if self.subscriptions.iter().any(|other| other.id == id) {
            return Err(wrong("there is a subscription of this `id`".to_owned()));
        }
        if self.subscriptions.len() == MAX_SUBSCRIPTIONS {
            let most = format!("a connection has at most {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(wrong(most));
        }
        let channel = Channel::named(channel).map_err(&wrong)?;
        let hub = self.live.hub.clone();
        let start = Start::find(&hub, after.as_deref()).await.map_err(&wrong)?;
        self.announce(&id, start, after.is_some());
        let number = self.next_number;
        self.next_number += 1;
        let subscription = Subscription::new(id, number, channel, start.place());
        self.subscriptions.push(subscription);
        Ok(())
    }

    fn announce(&mut self, id: &str, start: Start, resumed: bool) {
        let position = self.live.hub.log().position(Log::Events, start.place());
        let position = position.to_string();
        let position = position.as_str();
        self.wire.send(Reply::Subscribed { id, position }.to_text());
        if matches!(start, Start::Afresh(_)) {
            if resumed {
                self.wire.send(Reply::Reset { id }.to_text());
            }
            self.wire.send(Reply::Snapshot { id, data: [] }.to_text());
        }
    }

    fn unsubscribe(&mut self, id: String) -> Result<(), Malformed> {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|other| other.id != id);
        if self.subscriptions.len() == before {
            let error = "there is no subscription of this `id`";
            return Err(Malformed::new(Some(id), error));
        }
        Ok(())
    }
}

/// Where a subscription starts.
#[derive(Clone, Copy)]
enum Start {
    /// Behind what the client has seen.
    Behind(u64),
    /// From now on.
    Afresh(u64),
}

impl Start {
    async fn find(hub: &Hub, after: Option<&str>) -> Result<Self, String> {
        let Some(after) = after else {
            return Ok(Self::Afresh(hub.head()));
        };
        let wrong = |what: &str| format!("`after` is {what}");
        let position: Position = after
            .parse()
            .map_err(|error: PositionError| wrong(&error.to_string()))?;
        if position.log() != Log::Events {
            return Err(wrong("a position of another feed"));
        }
        match hub.log().parse_position(after) {
            Ok(position) if hub.reaches(position.sequence()).await => {
                Ok(Self::Behind(position.sequence()))
            }
            Ok(_) | Err(PositionError::OldEpoch) => Ok(Self::Afresh(hub.head())),
            Err(error) => Err(wrong(&error.to_string())),
        }
    }

    fn place(self) -> u64 {
        match self {
            Self::Behind(place) | Self::Afresh(place) => place,
        }
    }
}

/// Waits for what may be under way, for ever where nothing is.
async fn wait_for<F: Future + ?Sized>(under_way: &mut Option<Pin<Box<F>>>) -> F::Output {
    match under_way {
        Some(future) => future.await,
        None => pending().await,
    }
}
