//! The only tail of the log in this process, delivered to all sockets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::circles::Viewer;
use event_log::{Batch, EventLog};
use schemas::{Event, Log, OrgId, Recorded, Visibility};
use serde_json::Value;
use service::Clock;
use tokio::sync::watch;
use tokio::task::consume_budget;
use tokio::time::{Instant, sleep_until};

use super::channel::Channel;
use super::ring::{Found, LiveEvent, Ring};
use crate::erasure;
use crate::people::People;

/// Approximate bytes of the rings of all organizations together.
const ALL_RINGS_BYTES: usize = 64 * 1024 * 1024;
/// The lowest and the highest limit of one organization's ring, in bytes.
const RING_BYTES: std::ops::RangeInclusive<usize> = 64 * 1024..=4 * 1024 * 1024;

/// How long a socket lets its organization's events gather after it was woken, for each socket that
/// the organization has here: all of them together are woken at most this often.
const GATHER_EACH: Duration = Duration::from_micros(500);
/// The longest that events gather, however many sockets there are.
const GATHER_AT_MOST: Duration = Duration::from_millis(50);

/// Hands each organization's events to its sockets, encoding each event once.
///
/// Only organizations with a socket have a ring, so that no work is done for events that nobody
/// sees.
#[derive(Clone)]
pub(super) struct Hub {
    log: EventLog,
    people: People,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The sequence up to which events have been handed out.
    head: u64,
    feeds: HashMap<OrgId, Arc<Feed>>,
}

/// One organization's events for its sockets.
struct Feed {
    ring: Mutex<Ring>,
    changed: watch::Sender<()>,
    members: AtomicU32,
}

/// Encoded events by their sequence; `None` for those that sockets may not see.
type Encoded = HashMap<u64, Option<LiveEvent>>;

impl Hub {
    /// Creates a hub for what follows the sequence `head`.
    pub(super) fn new(log: EventLog, people: People, clock: Arc<dyn Clock>, head: u64) -> Self {
        let feeds = HashMap::new();
        Self {
            log,
            people,
            clock,
            state: Arc::new(Mutex::new(State { head, feeds })),
        }
    }

    /// Delivers a batch of the tail.
    pub(super) async fn publish(&self, batch: &Batch) {
        let revealed = self.reveal(batch).await;
        let events: Vec<&Recorded> = batch.readable("sockets").collect();
        let mut encoded = Encoded::new();
        loop {
            let lacking: Vec<&Recorded> = {
                let mut state = lock(&self.state);
                let is_lacking = |recorded: &&Recorded| {
                    state.feeds.contains_key(&recorded.stream.org)
                        && !encoded.contains_key(&recorded.sequence)
                };
                let lacking: Vec<&Recorded> = events.iter().copied().filter(is_lacking).collect();
                if lacking.is_empty() {
                    state.hand_out(&events, encoded);
                    state.head = batch.last_sequence;
                    return;
                }
                lacking
            };
            // Sockets come and go while events are encoded: who is connected is checked again.
            for recorded in lacking {
                let event = live_event(&self.log, recorded, revealed.get(&recorded.sequence));
                encoded.insert(recorded.sequence, event);
            }
            consume_budget().await;
        }
    }

    /// The data of the batch's events that contain personal data.
    async fn reveal(&self, batch: &Batch) -> HashMap<u64, Value> {
        let mut revealed = HashMap::new();
        for recorded in batch.events() {
            if recorded.event.personal().is_some() {
                revealed.insert(recorded.sequence, self.people.reveal(recorded).await);
            }
        }
        revealed
    }

    /// An event as sockets see it, if they may.
    pub(super) async fn live_event(&self, recorded: &Recorded) -> Option<LiveEvent> {
        let revealed = match recorded.event.personal() {
            Some(_) => Some(self.people.reveal(recorded).await),
            None => None,
        };
        live_event(&self.log, recorded, revealed.as_ref())
    }

    /// Whether an organization may be shown an event now, by what is known of persons.
    pub(super) fn shows(&self, org: &OrgId, event: &LiveEvent) -> bool {
        event.disclosure().is_none_or(|disclosure| {
            let (viewer, now) = (Viewer::Organization(org.clone()), self.clock.now());
            self.people.read(|directory| {
                let circles = directory.circles();
                circles.may_be_disclosed(&viewer, disclosure, now)
            })
        })
    }

    /// Waits until everything about persons currently in the log is known.
    pub(super) async fn settle(&self) {
        self.people.settle().await;
    }

    /// Joins an organization's sockets.
    pub(super) fn join(&self, org: &OrgId) -> Membership {
        let mut state = lock(&self.state);
        let head = state.head;
        let behind = || Arc::new(Feed::behind(head));
        let feed = state
            .feeds
            .entry(org.clone())
            .or_insert_with(behind)
            .clone();
        feed.members.fetch_add(1, Ordering::Relaxed);
        Membership {
            hub: self.clone(),
            org: org.clone(),
            changed: feed.changed.subscribe(),
            feed,
            rests_until: Instant::now(),
        }
    }

    /// The log behind the hub.
    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    /// The sequence up to which events have been handed out.
    pub(super) fn head(&self) -> u64 {
        lock(&self.state).head
    }
}

impl State {
    /// Puts events into the rings of their organizations and wakes the sockets.
    fn hand_out(&mut self, events: &[&Recorded], mut encoded: Encoded) {
        let max_bytes = (ALL_RINGS_BYTES / self.feeds.len().max(1))
            .clamp(*RING_BYTES.start(), *RING_BYTES.end());
        let now = Instant::now();
        let mut touched: Vec<&Arc<Feed>> = Vec::new();
        for recorded in events {
            if matches!(recorded.event, Event::AccountForgotten(_)) {
                self.forget(recorded.sequence);
            }
            let Some(feed) = self.feeds.get(&recorded.stream.org) else {
                continue;
            };
            if erasure::is_announced_by(&recorded.event) {
                lock(&feed.ring).forget(&recorded.stream);
            }
            if let Some(event) = encoded.remove(&recorded.sequence).flatten() {
                lock(&feed.ring).push(event, max_bytes, now);
            }
            if !touched.last().is_some_and(|last| Arc::ptr_eq(last, feed)) {
                touched.push(feed);
            }
        }
        for feed in touched {
            feed.changed.send_replace(());
        }
    }

    /// What was kept encoded may mention somebody who was forgotten: it is read from the log again.
    fn forget(&self, through: u64) {
        for feed in self.feeds.values() {
            lock(&feed.ring).clear(through);
        }
    }
}

impl Feed {
    fn behind(head: u64) -> Self {
        Self {
            ring: Mutex::new(Ring::new(head)),
            changed: watch::Sender::new(()),
            members: AtomicU32::new(0),
        }
    }

    /// How long a socket lets events gather.
    fn gathers(&self) -> Duration {
        let members = self.members.load(Ordering::Relaxed);
        GATHER_EACH.saturating_mul(members).min(GATHER_AT_MOST)
    }
}

/// An event as sockets see it, if they may; `revealed` is its data with personal data.
fn live_event(log: &EventLog, recorded: &Recorded, revealed: Option<&Value>) -> Option<LiveEvent> {
    if recorded.event.visibility() == Visibility::Internal {
        return None;
    }
    let position = log.position(Log::Events, recorded.sequence);
    let data = match revealed {
        Some(data) => Ok(data.clone()),
        None => recorded.event.public_data(),
    };
    data.and_then(|data| LiveEvent::encode(recorded, position, data))
        .inspect_err(|error| {
            let sequence = recorded.sequence;
            tracing::error!(sequence, %error, "An event cannot be shown");
        })
        .ok()
}

/// A socket's place among those of its organization.
pub(super) struct Membership {
    hub: Hub,
    org: OrgId,
    feed: Arc<Feed>,
    changed: watch::Receiver<()>,
    rests_until: Instant,
}

impl Membership {
    /// The organization.
    pub(super) fn org(&self) -> &OrgId {
        &self.org
    }

    /// The hub it belongs to.
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Waits for something new. The hub outlives its members, so there is no other end to it.
    ///
    /// What comes after a pause is reported at once. What comes in quick succession is reported
    /// together, since otherwise a busy organization with many sockets would cost a wake-up and a
    /// write for each batch and socket.
    pub(super) async fn changed(&mut self) {
        sleep_until(self.rests_until).await;
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.rests_until = Instant::now() + self.feed.gathers();
    }

    /// Up to `max` of the channel's events after `after`.
    pub(super) fn read(&self, after: u64, channel: Channel, max: usize) -> Found {
        lock(&self.feed.ring).read(after, channel, max, Instant::now())
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut state = lock(&self.hub.state);
        // Under the lock under which sockets join.
        if self.feed.members.fetch_sub(1, Ordering::Relaxed) == 1 {
            state.feeds.remove(&self.org);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds these locks can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
