//! One endpoint's deliveries: waiting, in progress, and to be retried.
//!
//! A queue holds sequences, never bodies, and a bounded number of them. First attempts beyond its
//! backlog stay in the log and are read from there once there is room
//! ([`EndpointQueue::wants_refill`]). An endpoint that fails while it has many retries gets new
//! events only as probes until it responds, and one that responds now and then once it has twice as
//! many. So a bad endpoint costs a bounded amount of memory and a slow one delays no other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::requests::{RequestCursor, Requests};
use super::work::{Bounds, Gap, Prior, Refill, Retry, Verdict, Work};

/// Maximum number of first attempts that wait in memory.
const MAX_BACKLOG: usize = 4_096;
/// The backlog is refilled from the log when it is shorter than this.
const LOW_BACKLOG: usize = 512;
/// Number of due deliveries at which no more are requested.
const ENOUGH_DUE: usize = 512;
/// Maximum number of attempts whose outcome is not recorded yet, besides those being sent.
const MAX_UNRECORDED: usize = 512;
/// How often an endpoint with too many retries is probed with a new event.
const PROBE: TimeDelta = TimeDelta::seconds(60);

/// One endpoint's deliveries.
#[derive(Debug)]
pub(super) struct EndpointQueue {
    bounds: Bounds,
    /// Sequences that wait for their first attempt, in order.
    backlog: VecDeque<u64>,
    /// Every wanted event up to here is in the backlog or past it.
    queued_through: u64,
    /// Events up to here may have been tried by another process.
    unsure_through: u64,
    /// Whether wanted events after `queued_through` are only in the log, and the last of them.
    behind: bool,
    missed: u64,
    refilling: bool,
    /// Wanted events that came since the log is being read, if there was room for all of them.
    meanwhile: Option<Vec<u64>>,
    /// Attempts that are not recorded yet, with the sequence of the previous one if there is one.
    under_way: BTreeMap<u64, Option<u64>>,
    retries: BTreeMap<u64, Retry>,
    due: BTreeSet<(DateTime<Utc>, u64)>,
    /// Requests in progress, and their limit: lower while the endpoint is overloaded.
    sending: usize,
    limit: usize,
    /// When the failures began, if no success has followed.
    failing_since: Option<DateTime<Utc>>,
    next_probe: DateTime<Utc>,
    /// Whether a retry goes next if both a retry and a first attempt could go.
    retry_next: bool,
    /// The replays and tests that its owner requested.
    requests: Requests,
}

impl EndpointQueue {
    /// A queue for a new endpoint, created at the sequence `since`.
    pub(super) fn new(bounds: Bounds, since: u64) -> Self {
        Self {
            limit: bounds.concurrency.max(1),
            bounds,
            backlog: VecDeque::new(),
            queued_through: since,
            unsure_through: 0,
            behind: false,
            missed: since,
            refilling: false,
            meanwhile: None,
            under_way: BTreeMap::new(),
            retries: BTreeMap::new(),
            due: BTreeSet::new(),
            sending: 0,
            failing_since: None,
            next_probe: DateTime::UNIX_EPOCH,
            retry_next: false,
            requests: Requests::default(),
        }
    }

    /// A queue taken over from another process, or from before a restart: every event up to
    /// `through` has had its first attempt, those from there to `unsure_through` perhaps. Events up
    /// to `head` passed before there was a queue to offer them to.
    pub(super) fn resume(bounds: Bounds, through: u64, unsure_through: u64, head: u64) -> Self {
        Self {
            unsure_through,
            behind: true,
            missed: head.max(through),
            ..Self::new(bounds, through)
        }
    }

    /// Restores the start of the endpoint's failures.
    pub(super) fn remember_failing(&mut self, since: Option<DateTime<Utc>>) {
        self.failing_since = since;
    }

    /// Sets the requests, and how far they are done.
    pub(super) fn with_requests(self, asked: u64, place: RequestCursor) -> Self {
        let requests = Requests::new(asked, place);
        Self { requests, ..self }
    }

    /// The owner's requests, mutable.
    pub(super) fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// How far the requests are done; `None` if nothing is open.
    pub(super) fn open_requests(&self) -> Option<RequestCursor> {
        self.requests.open()
    }

    /// The request to continue with, if there is room for more deliveries.
    pub(super) fn wants_replay(
        &mut self,
        now: DateTime<Utc>,
        crowded: bool,
    ) -> Option<RequestCursor> {
        self.requests.open()?;
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let has_room = self.retries.len() < self.bounds.retries(crowded);
        if has_room && due.take(ENOUGH_DUE).count() < ENOUGH_DUE {
            self.requests.begin()
        } else {
            None
        }
    }

    /// Takes a wanted event that the log has just delivered. Returns whether the queue holds it
    /// now; otherwise it is read from the log later.
    pub(super) fn offer(&mut self, sequence: u64) -> bool {
        if sequence <= self.queued_through || (self.behind && sequence <= self.missed) {
            return false;
        }
        // What another process may have tried is looked up when it is read from the log.
        let may_hold = sequence > self.unsure_through && self.held() < MAX_BACKLOG;
        if may_hold && !self.behind {
            self.backlog.push_back(sequence);
            self.queued_through = sequence;
            return true;
        }
        self.behind = true;
        self.missed = sequence;
        let mut meanwhile = self.meanwhile.take().filter(|_| may_hold);
        if let Some(held) = &mut meanwhile {
            held.push(sequence);
        }
        self.meanwhile = meanwhile;
        self.meanwhile.is_some()
    }

    fn held(&self) -> usize {
        self.backlog.len() + self.meanwhile.as_ref().map_or(0, Vec::len)
    }

    /// The gap to read from the log, if the queue has room for more of what it left there.
    pub(super) fn wants_refill(&mut self) -> Option<Gap> {
        if !self.behind || self.refilling || self.backlog.len() >= LOW_BACKLOG {
            return None;
        }
        self.refilling = true;
        self.meanwhile = Some(Vec::new());
        Some(Gap {
            after: self.queued_through,
            unsure_through: self.unsure_through,
        })
    }

    /// Takes wanted events that were read from the log. Those that came since then follow them: the
    /// log was read up to where they begin.
    pub(super) fn refill(&mut self, found: &Refill) {
        self.refilling = false;
        let meanwhile = self.meanwhile.take();
        self.backlog.extend(&found.untried);
        for (sequence, retry) in &found.waiting {
            self.remember(*sequence, *retry);
        }
        let mut through = found.through;
        if found.complete {
            // The log had nothing else, and it was not behind what was known before.
            through = through.max(found.head_before);
            for sequence in meanwhile.into_iter().flatten() {
                self.backlog.push_back(sequence);
                through = through.max(sequence);
            }
        }
        self.queued_through = self.queued_through.max(through);
        self.behind = self.queued_through < self.missed;
    }

    /// The log could not be read; it is queried again later.
    pub(super) fn refill_failed(&mut self) {
        self.refilling = false;
        self.meanwhile = None;
    }

    /// Whether [`Self::next`] would return an attempt now.
    pub(super) fn has_next(&self, now: DateTime<Utc>, crowded: bool) -> bool {
        self.could_go(now, crowded) != (None, None)
    }

    /// The retry and the first attempt that could go now.
    fn could_go(
        &self,
        now: DateTime<Utc>,
        crowded: bool,
    ) -> (Option<(DateTime<Utc>, u64)>, Option<u64>) {
        let unrecorded = self.under_way.len().saturating_sub(self.sending);
        if self.sending >= self.limit || unrecorded >= MAX_UNRECORDED {
            return (None, None);
        }
        let retry = self.due.first().filter(|(due, _)| *due <= now);
        let may_begin = !self.is_held(crowded) || self.next_probe <= now;
        let fresh = self.backlog.front().filter(|_| may_begin);
        (retry.copied(), fresh.copied())
    }

    /// The next attempt to make now, if there is one. `crowded`: all queues together have too many
    /// retries.
    pub(super) fn next(&mut self, now: DateTime<Utc>, crowded: bool) -> Option<Work> {
        let work = match self.could_go(now, crowded) {
            (Some((due, sequence)), None) => self.take_retry(due, sequence)?,
            (Some((due, sequence)), Some(_)) if self.retry_next => {
                self.take_retry(due, sequence)?
            }
            (_, Some(sequence)) => {
                if self.is_held(crowded) {
                    self.next_probe = now + PROBE;
                }
                self.take_fresh(sequence)
            }
            (None, None) => return None,
        };
        self.sending += 1;
        Some(work)
    }

    /// Whether new events are only sent as probes.
    fn is_held(&self, crowded: bool) -> bool {
        let most = if self.failing_since.is_some() {
            self.bounds.retries(crowded)
        } else {
            self.bounds.retries_of_any(crowded)
        };
        self.retries.len() >= most
    }

    fn take_retry(&mut self, due: DateTime<Utc>, sequence: u64) -> Option<Work> {
        self.retry_next = false;
        self.due.remove(&(due, sequence));
        let Retry {
            attempts, recorded, ..
        } = self.retries.remove(&sequence)?;
        self.under_way.insert(sequence, Some(recorded));
        let prior = Prior::Attempted { attempts, recorded };
        Some(Work { sequence, prior })
    }

    fn take_fresh(&mut self, sequence: u64) -> Work {
        self.retry_next = true;
        self.backlog.pop_front();
        self.under_way.insert(sequence, None);
        let prior = Prior::New;
        Work { sequence, prior }
    }

    /// Records that the request of an attempt has ended.
    pub(super) fn answered(&mut self, answer: Verdict, now: DateTime<Utc>) {
        self.sending = self.sending.saturating_sub(1);
        match answer {
            Verdict::Well => {
                self.failing_since = None;
                // Each success allows one more, so that an endpoint that recovers need not wait.
                self.next_probe = DateTime::UNIX_EPOCH;
                self.limit = (self.limit + 1).min(self.bounds.concurrency.max(1));
            }
            Verdict::Badly => _ = self.failing_since.get_or_insert(now),
            Verdict::Overwhelmed => {
                self.failing_since.get_or_insert(now);
                self.limit = (self.limit / 2).max(1);
            }
            Verdict::NotSent => {}
        }
    }

    /// Records that an attempt is in the log, with the next one if there is one.
    pub(super) fn recorded(&mut self, sequence: u64, retry: Option<Retry>) {
        self.under_way.remove(&sequence);
        if let Some(retry) = retry {
            self.remember(sequence, retry);
        }
    }

    /// Adds a delivery that is to be retried according to the log.
    pub(super) fn remember(&mut self, sequence: u64, retry: Retry) {
        if self.under_way.contains_key(&sequence) {
            return;
        }
        if let Some(old) = self.retries.get(&sequence) {
            if old.recorded >= retry.recorded {
                return;
            }
            self.due.remove(&(old.due, sequence));
        }
        self.due.insert((retry.due, sequence));
        self.retries.insert(sequence, retry);
    }

    /// The next time at which there may be something to do without any other event.
    pub(super) fn wake(&self, crowded: bool) -> Option<DateTime<Utc>> {
        let due = self.due.first().map(|(due, _)| *due);
        let probe = !self.backlog.is_empty() && self.is_held(crowded);
        let probe = probe.then_some(self.next_probe);
        due.into_iter().chain(probe).min()
    }

    /// The sequence up to which every wanted event has had its first attempt recorded; `None` if
    /// nothing is open.
    pub(super) fn cursor(&self) -> Option<u64> {
        let waiting = self.backlog.front().copied();
        let first_attempt =
            |(sequence, before): (&u64, &Option<u64>)| before.is_none().then_some(*sequence);
        let under_way = self.under_way.iter().find_map(first_attempt);
        match waiting.into_iter().chain(under_way).min() {
            Some(lowest) => Some(lowest - 1),
            None => self.behind.then_some(self.queued_through),
        }
    }

    /// The sequences in the deliveries' log of the deliveries still to be retried.
    pub(super) fn open_records(&self) -> impl Iterator<Item = u64> {
        let waiting = self.retries.values().map(|retry| retry.recorded);
        let under_way = self.under_way.values().flatten().copied();
        waiting.chain(under_way)
    }

    /// When the failures began, if no success has followed.
    pub(super) fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.failing_since
    }

    /// Whether it has only failed for at least `give_up_after`.
    pub(super) fn is_hopeless(&self, now: DateTime<Utc>, give_up_after: Duration) -> bool {
        let failing = self
            .failing_since
            .and_then(|since| (now - since).to_std().ok());
        failing.is_some_and(|failing| failing >= give_up_after)
    }

    /// Forgets earlier failures, after the endpoint was changed.
    pub(super) fn forgive(&mut self) {
        self.failing_since = None;
        self.next_probe = DateTime::UNIX_EPOCH;
        self.limit = self.bounds.concurrency.max(1);
    }

    /// The sequences of the last attempts of all deliveries that wait for a retry.
    pub(super) fn retry_records(&self) -> Vec<u64> {
        self.retries.values().map(|retry| retry.recorded).collect()
    }

    /// Number of deliveries that wait for a retry.
    pub(super) fn retrying(&self) -> usize {
        self.retries.len()
    }

    /// Number of deliveries that wait in memory for their first attempt.
    pub(super) fn waiting(&self) -> usize {
        self.backlog.len()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
