//! How much each party may ask of the log while the log is slow.
//!
//! Turns are fair, and yet a party that asks for little waits for everything that two others have
//! in flight: in the server, for the disk and for a processor. So while the server answers slowly,
//! parties that ask for much are held back. Each party has a bucket of messages to write and one of
//! bytes to read. One pace fills them all: it falls while answers are slow and rises while they are
//! not, as congestion control does. A party that has always asked for more keeps that for a while
//! ([`habits`]). A party is held back only if another asks for little.

mod habits;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::habits::Habits;
use crate::LogSettings;
use crate::party::Party;

/// How often the pace changes.
const STEP: Duration = Duration::from_millis(50);
const SLOWER: f64 = 0.7;
const FASTER: f64 = 1.03;
/// The weight of one answer in their mean.
const WEIGHT: f64 = 0.1;
/// How far the time of a quick answer moves towards the mean with each step: a disk that has become
/// slower is recognised after some ten minutes.
const FORGOTTEN: f64 = 0.000_1;
/// An answer is slow only if it takes this many times as long as a quick one: on a disk or over a
/// network that is slow by nature, holding back would gain nothing.
const TIMES_QUICK: f64 = 4.0;
/// The burst that a party may ask for at once, in seconds of its pace.
const BURST: f64 = 0.25;
/// A party that owes less than this part of its burst asks for little.
const LITTLE: f64 = 0.25;
/// How long a party that asked for little counts as present.
const AT_THIS_TIME: Duration = Duration::from_secs(1);
/// A message larger than this counts as several.
pub(crate) const MESSAGE_BYTES: u64 = 8 * 1024;
/// Bytes that may be read for each message that may be written.
const READ_FOR_MESSAGE: f64 = 1_024.0;
/// How often to check whether a party may read.
const LOOK: Duration = Duration::from_millis(10);

/// What a party asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Messages to be written.
    Messages,
    /// Bytes read for an outside reader.
    Bytes,
}

/// Holds back what one program asks of the log while the log is slow. Clones share its state.
#[derive(Clone)]
pub(crate) struct Throttle(Arc<Mutex<State>>);

struct State {
    /// A mean answer that takes longer than this is slow, in seconds; 0 means never.
    slow: f64,
    /// The mean time of answers, in seconds.
    mean: f64,
    quick: f64,
    changed: Option<Instant>,
    little: Little,
    messages: Buckets,
    bytes: Buckets,
}

impl Throttle {
    pub(crate) fn new(settings: &LogSettings) -> Self {
        Self(Arc::new(Mutex::new(State::new(settings))))
    }

    /// Whether a party may currently ask for more.
    pub(crate) fn admits(&self, resource: Resource, party: Party) -> bool {
        self.state().admits(resource, party, Instant::now())
    }

    /// Counts what a party was given.
    pub(crate) fn count(&self, resource: Resource, party: Party, amount: u64) {
        let mut state = self.state();
        state
            .buckets(resource)
            .count(party, as_f64(amount), Instant::now());
    }

    /// How many messages a party that is held back may write within a time.
    pub(crate) fn messages_within(&self, party: Party, time: Duration) -> u64 {
        as_u64(self.state().messages.rate_of(party) * time.as_secs_f64())
    }

    /// Learns how long the server took to answer.
    pub(crate) fn answered(&self, after: Duration) {
        self.state().answered(after, Instant::now());
    }

    /// Waits until a party may read.
    pub(crate) async fn until_read(&self, party: Party) {
        if self.admits(Resource::Bytes, party) {
            return;
        }
        Resource::Bytes.count_held_back();
        while !self.admits(Resource::Bytes, party) {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Bytes => "bytes",
        }
    }

    /// Counts that a party is held back.
    pub(crate) fn count_held_back(self) {
        metrics::counter!("waypost_log_held_back_total", "asked" => self.name()).increment(1);
    }
}

impl State {
    fn new(settings: &LogSettings) -> Self {
        let least = as_f64(settings.log_least_messages);
        Self {
            slow: Duration::from_millis(settings.log_slow_ms).as_secs_f64(),
            mean: 0.0,
            quick: 0.0,
            changed: None,
            little: Little::default(),
            messages: Buckets::new(least, 0.5),
            bytes: Buckets::new(least * READ_FOR_MESSAGE, 10.0),
        }
    }

    fn buckets(&mut self, resource: Resource) -> &mut Buckets {
        match resource {
            Resource::Messages => &mut self.messages,
            Resource::Bytes => &mut self.bytes,
        }
    }

    fn admits(&mut self, resource: Resource, party: Party, now: Instant) -> bool {
        if self.slow == 0.0 {
            return true;
        }
        let used = self.buckets(resource).used(party, now);
        if used < LITTLE {
            self.little.note(party, now);
        }
        let admits = used < 1.0 || !self.little.is_of_others(party, now);
        if !admits {
            self.buckets(resource).habits.held(party, now);
        }
        admits
    }

    fn answered(&mut self, after: Duration, now: Instant) {
        let after = after.as_secs_f64();
        self.mean += (after - self.mean) * WEIGHT;
        // Even under load, the quickest answers show what the server and its disk need.
        if self.quick == 0.0 || after < self.quick {
            self.quick = after;
        }
        if self.changed.is_some_and(|at| now.duration_since(at) < STEP) {
            return;
        }
        self.changed = Some(now);
        self.quick += (self.mean - self.quick).max(0.0) * FORGOTTEN;
        let is_slow = self.mean > self.slow.max(self.quick * TIMES_QUICK);
        let factor = if is_slow { SLOWER } else { FASTER };
        for resource in [Resource::Messages, Resource::Bytes] {
            let buckets = self.buckets(resource);
            buckets.change(factor, now);
            metrics::gauge!("waypost_log_pace", "asked" => resource.name()).set(buckets.rate);
        }
    }
}

/// The buckets of all parties, by what each owes.
struct Buckets {
    /// Per second.
    rate: f64,
    least: f64,
    /// No party owes more than what comes in this many seconds.
    longest: f64,
    owed: HashMap<Party, (f64, Instant)>,
    habits: Habits,
}

impl Buckets {
    /// At this many times the least, no party is held back.
    const MOST: f64 = 100.0;

    fn new(least: f64, longest: f64) -> Self {
        Self {
            rate: least * Self::MOST,
            least,
            longest,
            owed: HashMap::new(),
            habits: Habits::new(least),
        }
    }

    /// What a party's bucket gains per second.
    fn rate_of(&self, party: Party) -> f64 {
        self.rate.max(self.habits.rate_of(party))
    }

    fn owed(&self, party: Party, now: Instant) -> f64 {
        self.owed.get(&party).map_or(0.0, |(owed, since)| {
            (owed - self.paid(party, *since, now)).max(0.0)
        })
    }

    fn paid(&self, party: Party, since: Instant, now: Instant) -> f64 {
        now.duration_since(since).as_secs_f64() * self.rate_of(party)
    }

    /// The part of its burst that a party has used.
    fn used(&self, party: Party, now: Instant) -> f64 {
        self.owed(party, now) / (self.rate_of(party) * BURST)
    }

    fn count(&mut self, party: Party, amount: f64, now: Instant) {
        let owed = (self.owed(party, now) + amount).min(self.rate_of(party) * self.longest);
        self.owed.insert(party, (owed, now));
        self.habits.count(party, amount, now);
    }

    fn change(&mut self, factor: f64, now: Instant) {
        // What is paid so far is paid at the old pace.
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|party, (left, since)| {
            *left -= self.paid(*party, *since, now);
            *since = now;
            *left > 0.0
        });
        self.owed = owed;
        self.rate = (self.rate * factor).clamp(self.least, self.least * Self::MOST);
    }
}

/// The two parties that asked for little last.
#[derive(Default)]
struct Little {
    last: Option<(Party, Instant)>,
    before: Option<(Party, Instant)>,
}

impl Little {
    fn note(&mut self, party: Party, now: Instant) {
        if self.last.is_none_or(|(last, _)| last != party) {
            self.before = self.last;
        }
        self.last = Some((party, now));
    }

    fn is_of_others(&self, party: Party, now: Instant) -> bool {
        [self.last, self.before]
            .into_iter()
            .flatten()
            .any(|(other, at)| other != party && now.duration_since(at) < AT_THIS_TIME)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a pace is not exact")]
fn as_f64(amount: u64) -> f64 {
    amount as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a pace is not exact, and never negative"
)]
fn as_u64(amount: f64) -> u64 {
    amount as u64
}

#[cfg(test)]
mod tests;
