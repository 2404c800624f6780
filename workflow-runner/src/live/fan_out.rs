//! Hands events of persons to the sockets of those who may see them.
//!
//! Each event is unsealed and encoded once, and only if somebody is connected to see it. Who that
//! is follows from the person's circles, so unrelated sockets are not asked.

mod openings;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use access::Access;
use domain::circles::Viewer;
use event_log::{Batch, EventLog, Item};
use futures::future::join_all;
use schemas::{AccountId, Event, Log, Recorded};
use service::Clock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::calls::OpenCalls;
use super::channel::Channel;
use super::latest::Latest;
use super::outbox::{Entry, Fact};
use super::ring::LiveEvent;
use super::subscriber::{Registration, Subscriber};
use super::visibility::Visibility;
use crate::people::People;

/// Events that are unsealed concurrently.
const SIDE_BY_SIDE: usize = 32;
/// How soon to check again whether this process knows of an account's last event.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Hands events of persons to all subscribers of this process. Clones are the same.
#[derive(Clone)]
pub(super) struct FanOut(Arc<Inner>);

struct Inner {
    log: EventLog,
    people: People,
    access: Access,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// The sequence up to which positions have been handed out.
    locations: watch::Sender<u64>,
    /// Whether the calls for help from before the start are known.
    calls_known: watch::Sender<bool>,
}

/// State that changes with every event.
pub(super) struct State {
    heads: Heads,
    latest: Latest,
    calls: OpenCalls,
    subscribers: HashMap<Viewer, Vec<Arc<Subscriber>>>,
}

/// The sequences up to which events have been handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) events: u64,
    pub(super) locations: u64,
}

impl Heads {
    fn of(&mut self, log: Log) -> &mut u64 {
        match log {
            Log::Locations => &mut self.locations,
            Log::Events | Log::Deliveries => &mut self.events,
        }
    }
}

/// Encoded events by their sequence; `None` for those that cannot be shown.
type Encoded = HashMap<u64, Option<Arc<Fact>>>;

impl FanOut {
    /// Creates a fan-out for what follows `heads`.
    pub(super) fn new(
        log: EventLog,
        people: People,
        access: Access,
        clock: Arc<dyn Clock>,
        heads: Heads,
        latest: Latest,
    ) -> Self {
        let state = State {
            heads,
            latest,
            calls: OpenCalls::default(),
            subscribers: HashMap::new(),
        };
        Self(Arc::new(Inner {
            log,
            people,
            access,
            clock,
            locations: watch::Sender::new(heads.locations),
            calls_known: watch::Sender::new(false),
            state: Mutex::new(state),
        }))
    }

    /// The directory of persons.
    pub(super) fn people(&self) -> &People {
        &self.0.people
    }

    /// The log behind it.
    pub(super) fn log(&self) -> &EventLog {
        &self.0.log
    }

    /// Waits until everything currently in the log is known, and in force for tokens too.
    pub(super) async fn settle(&self) {
        self.0.people.settle().await;
        self.accounts_known(self.0.people.accounts_through()).await;
    }

    /// Waits until every position currently in the log is known, so that a client whose position
    /// was acknowledged finds it.
    pub(super) async fn settle_positions(&self) {
        let Ok(end) = self.0.log.end(Log::Locations).await else {
            // The positions that follow will come either way.
            return;
        };
        let head = self.0.locations.subscribe();
        let log = &self.0.log;
        log.until_taken(Log::Locations, head, end.sequence()).await;
    }

    /// Waits until what the log says of accounts up to this sequence is in force.
    pub(super) async fn accounts_known(&self, through: u64) {
        while self.0.access.accounts_seen() < through {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Delivers a batch of a tail of `log`. `settled` is the time as of which everything in the log
    /// is known, if that was ensured.
    pub(super) async fn publish(&self, log: Log, batch: &Batch, settled: Option<Instant>) {
        let facts: Vec<(&Recorded, Visibility)> = batch
            .events()
            .filter_map(|recorded| Some((recorded, Visibility::of(recorded)?)))
            .collect();
        let mut encoded = Encoded::new();
        loop {
            let lacking = {
                let mut state = lock(&self.0.state);
                let wanted = self.wanted(&state, &facts);
                let is_there = |(nth, _): &&(usize, Arc<Subscriber>)| {
                    encoded.contains_key(&facts[*nth].0.sequence)
                };
                let mut lacking: Vec<usize> = wanted
                    .iter()
                    .filter(|entry| !is_there(entry))
                    .map(|(nth, _)| *nth)
                    .collect();
                lacking.dedup();
                if lacking.is_empty() {
                    self.hand_out(&mut state, &facts, &wanted, &encoded, settled);
                    *state.heads.of(log) = batch.last_sequence;
                    self.0.locations.send_replace(state.heads.locations);
                    return;
                }
                lacking
            };
            // Somebody may connect while events are encoded: who is connected is checked again.
            for some in lacking.chunks(SIDE_BY_SIDE) {
                let encode = |nth: &usize| self.encode(facts[*nth].0, &facts[*nth].1);
                let news = join_all(some.iter().map(encode)).await;
                let sequences = some.iter().map(|nth| facts[*nth].0.sequence);
                encoded.extend(sequences.zip(news));
            }
        }
    }

    /// The connected subscribers for each of the events.
    fn wanted(
        &self,
        state: &State,
        facts: &[(&Recorded, Visibility)],
    ) -> Vec<(usize, Arc<Subscriber>)> {
        if state.subscribers.is_empty() {
            return Vec::new();
        }
        let now = self.0.clock.now();
        self.0.people.read(|directory| {
            let circles = directory.circles();
            let mut wanted = Vec::new();
            for (nth, (_, visibility)) in facts.iter().enumerate() {
                for viewer in visibility.candidates(circles) {
                    let Some(subscribers) = state.subscribers.get(&viewer) else {
                        continue;
                    };
                    if visibility.is_for(&viewer, circles, now) {
                        let subscribers = subscribers
                            .iter()
                            .filter(|subscriber| subscriber.takes(visibility.channel()));
                        wanted.extend(subscribers.map(|subscriber| (nth, subscriber.clone())));
                    }
                }
            }
            wanted
        })
    }

    fn hand_out(
        &self,
        state: &mut State,
        facts: &[(&Recorded, Visibility)],
        wanted: &[(usize, Arc<Subscriber>)],
        encoded: &Encoded,
        settled: Option<Instant>,
    ) {
        for (nth, subscriber) in wanted {
            let fact = encoded.get(&facts[*nth].0.sequence).cloned().flatten();
            if let Some(fact) = fact {
                subscriber.push(&Entry { fact, settled });
            }
        }
        self.0.people.read(|directory| {
            for (recorded, _) in facts {
                state.latest.take_judged(recorded, directory.circles());
                state.calls.take(recorded);
            }
        });
    }

    /// Encodes an event with its personal data.
    pub(super) async fn encode(
        &self,
        recorded: &Recorded,
        visibility: &Visibility,
    ) -> Option<Arc<Fact>> {
        let data = self.0.people.reveal(recorded).await;
        let log = visibility.channel().log();
        let position = self.0.log.position(log, recorded.sequence);
        let event = LiveEvent::encode(recorded, position, data)
            .inspect_err(|error| {
                let sequence = recorded.sequence;
                tracing::error!(sequence, %error, "An event cannot be shown");
            })
            .ok()?;
        let visibility = visibility.clone();
        Some(Arc::new(Fact { visibility, event }))
    }

    /// Whether a viewer may currently see what each event discloses, by what is known now.
    pub(super) fn check<'s>(
        &self,
        viewer: &Viewer,
        visibilities: impl Iterator<Item = &'s Visibility>,
    ) -> Vec<bool> {
        let now = self.0.clock.now();
        self.0.people.read(|directory| {
            let circles = directory.circles();
            visibilities
                .map(|visibility| visibility.is_for(viewer, circles, now))
                .collect()
        })
    }

    /// Adds a subscriber.
    pub(super) fn join(&self, viewer: Viewer) -> Registration {
        let subscriber = Arc::new(Subscriber::new(viewer.clone()));
        let mut state = lock(&self.0.state);
        state
            .subscribers
            .entry(viewer)
            .or_default()
            .push(subscriber.clone());
        drop(state);
        Registration::new(self.clone(), subscriber)
    }

    pub(super) fn leave(&self, subscriber: &Arc<Subscriber>) {
        let mut state = lock(&self.0.state);
        if let Some(subscribers) = state.subscribers.get_mut(subscriber.viewer()) {
            subscribers.retain(|other| !Arc::ptr_eq(other, subscriber));
            if subscribers.is_empty() {
                state.subscribers.remove(subscriber.viewer());
            }
        }
    }

    /// The sequence up to which a channel's events have been handed out.
    pub(super) fn head(&self, channel: Channel) -> u64 {
        *lock(&self.0.state).heads.of(channel.log())
    }

    /// Drops what is held of persons who were forgotten.
    pub(super) fn forget(&self, batch: &Batch) {
        for item in &batch.items {
            if let Item::Event(recorded) = item
                && let Event::AccountForgotten(forgotten) = &recorded.event
            {
                let mut state = lock(&self.0.state);
                state.latest.forget(forgotten.account_id);
                state.calls.forget(forgotten.account_id);
            }
        }
    }

    /// Makes the sockets of persons check whether they are still admitted.
    pub(super) fn wake(&self, accounts: &[AccountId]) {
        let state = lock(&self.0.state);
        for account in accounts {
            let subscribers = state.subscribers.get(&Viewer::Account(*account));
            for subscriber in subscribers.into_iter().flatten() {
                subscriber.wake();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds this lock can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
