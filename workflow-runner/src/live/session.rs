//! One connection, from the time its client is known to its end.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use event_log::ReadError;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

use super::auth::Viewer;
use super::budget::Budget;
use super::channel::Channel;
use super::close::CloseReason;
use super::flow::{Flow, Next, Page, Work};
use super::frames::{Malformed, Reply, Request};
use super::hub::Membership;
use super::person_subscription::PersonSubscription;
use super::start::Start;
use super::subscriber::Registration;
use super::subscription::Subscription;
use super::wire::{Heard, Wire};
use super::{Live, snapshot};
use crate::task::Task;

/// Subscriptions of one connection.
const MAX_SUBSCRIPTIONS: usize = 16;
/// The pause before failed work is tried again.
const WORK_AGAIN: Duration = Duration::from_millis(500);

/// Why a session ends: with a reason to report, or because the client has disconnected.
pub(super) type Ended = Option<CloseReason>;

/// What a subscription waits for, by its number. It continues whatever else the session does, since
/// it may hold what others wait for.
type Working = Task<(u64, Result<Page, ReadError>)>;

/// A connection whose client is known.
pub(super) struct Session {
    live: Live,
    wire: Wire,
    viewer: Viewer,
    /// The place among the sockets of the viewer's organization.
    member: Option<Membership>,
    /// The registration for events of persons.
    subscriber: Registration,
    subscriptions: Vec<Flow>,
    next_number: u64,
    /// Which subscription goes first, so that a busy one does not starve the others.
    turn: usize,
    working: Option<Working>,
    /// Resolves when the client may no longer see anything.
    ended: BoxFuture<'static, ()>,
    ping: Interval,
    budget: Budget,
}

impl Session {
    pub(super) fn new(live: Live, wire: Wire, viewer: Viewer, budget: Budget) -> Self {
        let every = live.settings.ping_interval;
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            member: viewer.org().map(|org| live.hub.join(org)),
            subscriber: live.fan_out.join(viewer.identity()),
            ended: live.ended(&viewer),
            live,
            wire,
            viewer,
            subscriptions: Vec::new(),
            next_number: 0,
            turn: 0,
            working: None,
            ping,
            budget,
        }
    }

    /// Serves the client until one side ends it; returns the connection, and why.
    pub(super) async fn run(mut self) -> (Wire, Ended) {
        let mut closing = pin!(self.live.closing.clone().cancelled_owned());
        self.wire.send(Reply::Ready.to_text());
        // From here on it is notified when a token ends; one that ended before is noticed now.
        let mut step = self.check_token();
        while step.is_ok() {
            if let Err(ended) = self.fill() {
                step = Err(ended);
                break;
            }
            step = tokio::select! {
                heard = self.wire.next() => self.hear(heard).await,
                (number, done) = wait_for(&mut self.working) => self.take(number, done),
                () = changed(&mut self.member), if self.wire.is_idle() => Ok(()),
                () = self.subscriber.woken() => self.check_token(),
                _ = self.ping.tick() => self.beat(),
                () = &mut self.ended => Err(Some(CloseReason::TokenEnded)),
                () = &mut closing => Err(Some(self.live.closing_reason())),
            };
        }
        (self.wire, step.err().flatten())
    }

    /// Lets one subscription send, once everything queued before has been sent.
    fn fill(&mut self) -> Result<(), Ended> {
        if self.subscriber.is_hopeless() {
            return Err(Some(CloseReason::Stalled));
        }
        let count = self.subscriptions.len();
        if !self.wire.is_idle() {
            return Ok(());
        }
        for offset in 0..count {
            let nth = (self.turn + offset) % count;
            let flow = &mut self.subscriptions[nth];
            match flow.advance(self.member.as_ref(), &self.subscriber, &self.live.turns) {
                Next::Frames(frames) => {
                    // Checked last: the token may have ended with what was just learned.
                    self.check_token()?;
                    self.turn = nth + 1;
                    self.send_events(frames);
                    return Ok(());
                }
                Next::Work(work) if self.working.is_none() => {
                    self.turn = nth + 1;
                    let number = flow.number;
                    self.work(number, work, Duration::ZERO);
                }
                Next::Work(_) | Next::Wait => {}
            }
        }
        Ok(())
    }

    fn send_events(&mut self, frames: Vec<String>) {
        metrics::counter!("waypost_ws_events_total").increment(frames.len() as u64);
        for frame in frames {
            self.wire.send(frame);
        }
    }

    fn work(&mut self, number: u64, work: Work, after: Duration) {
        self.working = Some(Task::spawn(async move {
            if !after.is_zero() {
                sleep(after).await;
            }
            (number, work.await)
        }));
    }

    fn take(&mut self, number: u64, done: Result<Page, ReadError>) -> Result<(), Ended> {
        self.working = None;
        self.check_token()?;
        let of_it = |flow: &&mut Flow| flow.number == number;
        let Some(flow) = self.subscriptions.iter_mut().find(of_it) else {
            return Ok(());
        };
        match done {
            Ok(page) => {
                let is_page = !matches!(page, Page::Settled(_));
                metrics::counter!("waypost_ws_replay_pages_total").increment(is_page.into());
                let frames = flow.take(&page, &self.subscriber);
                self.send_events(frames);
            }
            Err(error) => {
                tracing::warn!(%error, "A socket's replay is waiting for the log");
                let next = flow.advance(self.member.as_ref(), &self.subscriber, &self.live.turns);
                match next {
                    Next::Work(again) => self.work(number, again, WORK_AGAIN),
                    Next::Frames(frames) => self.send_events(frames),
                    Next::Wait => {}
                }
            }
        }
        Ok(())
    }

    /// Keeps a live client and drops a dead one.
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
        self.check_token()
    }

    fn check_token(&self) -> Result<(), Ended> {
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
            Ok(Request::Auth { token }) => self.renew(&token).await?,
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

    /// Continues under another token of the same organization or person.
    async fn renew(&mut self, token: &str) -> Result<Result<(), Malformed>, Ended> {
        let viewer = self.live.readmit(token).await.map_err(Some)?;
        if viewer.identity() != self.viewer.identity() {
            let error =
                "the token belongs to another organization or person; open a new connection";
            return Ok(Err(Malformed::new(None, error)));
        }
        self.ended = self.live.ended(&viewer);
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
            return Err(wrong("`id`: already subscribed".to_owned()));
        }
        if self.subscriptions.len() == MAX_SUBSCRIPTIONS {
            let most = format!("a connection has at most {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(wrong(most));
        }
        let channel = Channel::named(channel).map_err(&wrong)?;
        if !channel.is_of_persons() && self.member.is_none() {
            let for_keys = format!("the channel `{}` requires an API key", channel.name());
            return Err(wrong(for_keys));
        }
        let head = self.head(channel);
        let start = Start::find(self.live.hub.log(), channel, after.as_deref(), head).await;
        let start = start.map_err(&wrong)?;
        let number = self.next_number;
        self.next_number += 1;
        let flow = if channel.is_of_persons() {
            self.look_out(id, number, channel, start).await
        } else {
            let place = match start {
                Start::Behind(place) => place,
                Start::Now | Start::Again => self.live.hub.head(),
            };
            self.announce(&id, channel, start, place, &[]);
            let subscription = Subscription::new(&id, channel, place);
            Flow::own(id, number, subscription)
        };
        self.subscriptions.push(flow);
        Ok(())
    }

    /// Subscribes to events of persons.
    async fn look_out(&mut self, id: String, number: u64, channel: Channel, start: Start) -> Flow {
        // The viewer may have joined a circle a moment ago.
        self.live.fan_out.settle().await;
        let (place, since) = match start {
            Start::Behind(place) => (place, self.subscriber.open(number, channel)),
            Start::Now | Start::Again => {
                let (since, data) = self.begin(number, channel).await;
                self.announce(&id, channel, start, since, &data);
                (since, since)
            }
        };
        if let Start::Behind(place) = start {
            self.announce(&id, channel, start, place, &[]);
        }
        let subscription = PersonSubscription::new(id.clone(), number, channel, place, since);
        Flow::persons(id, number, subscription)
    }

    /// Opens an outbox, and returns the latest state of its channel.
    async fn begin(&mut self, number: u64, channel: Channel) -> (u64, Vec<Value>) {
        let (fan_out, viewer) = (self.subscriber.fan_out(), self.subscriber.viewer());
        let (since, shown) = match channel {
            Channel::Locations => {
                fan_out.settle_positions().await;
                let (since, candidates) = self.subscriber.open_with_latest(number).await;
                (since, snapshot::show(fan_out, viewer, candidates).await)
            }
            Channel::Sos => {
                let (since, calls) = self.subscriber.open_with_calls(number).await;
                (since, snapshot::show_calls(fan_out, viewer, calls).await)
            }
            _ => return (self.subscriber.open(number, channel), Vec::new()),
        };
        // If the token has ended meanwhile, so does the socket in a moment.
        let admitted = self.live.still_admits(&self.viewer);
        (since, if admitted { shown } else { Vec::new() })
    }

    fn head(&self, channel: Channel) -> u64 {
        if channel.is_of_persons() {
            self.live.fan_out.head(channel)
        } else {
            self.live.hub.head()
        }
    }

    fn announce(&mut self, id: &str, channel: Channel, start: Start, place: u64, data: &[Value]) {
        let position = self.live.hub.log().position(channel.log(), place);
        let position = position.to_string();
        let position = position.as_str();
        self.wire.send(Reply::Subscribed { id, position }.to_text());
        if start == Start::Again {
            self.wire.send(Reply::Reset { id }.to_text());
        }
        if !matches!(start, Start::Behind(_)) {
            self.wire.send(Reply::Snapshot { id, data }.to_text());
        }
    }

    fn unsubscribe(&mut self, id: String) -> Result<(), Malformed> {
        let Some(nth) = self.subscriptions.iter().position(|other| other.id == id) else {
            let error = "`id`: no such subscription";
            return Err(Malformed::new(Some(id), error));
        };
        let flow = self.subscriptions.remove(nth);
        self.subscriber.close(flow.number);
        Ok(())
    }
}

/// Waits for something new among an organization's own events.
async fn changed(member: &mut Option<Membership>) {
    match member {
        Some(member) => member.changed().await,
        None => pending().await,
    }
}

/// Waits for a task in progress, forever if there is none.
async fn wait_for<T>(under_way: &mut Option<Task<T>>) -> T {
    match under_way {
        Some(task) => task.await,
        None => pending().await,
    }
}
