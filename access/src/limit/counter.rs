//! One caller's use under one policy, as this process knows it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::decision::{Decision, Policy};
use super::prepaid::{Ahead, CheckRate, Prepaid};
use super::use_of::{CounterSnapshot, Late, Use, Window, second_of};

/// A counter. There is one in a process for each caller and policy.
pub struct Counter {
    name: Arc<str>,
    policy: Policy,
    window: Window,
    known: Mutex<CounterState>,
}

struct CounterState {
    usage: Use,
    rate: CheckRate,
    /// When `usage` was last seen; meaningless before that.
    seen_at: Instant,
    prepaid: Option<Prepaid>,
    /// Prepaid checks that were not used and have not been given back yet.
    unspent: Vec<Late>,
    refused: Option<Refused>,
    /// Whether the counter is on the list of counters with something to write.
    listed: bool,
    /// Whether it is on the list of counters whose prepaid checks have to be settled.
    settling: bool,
}

/// The database's decision on checks of a counter that were requested together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The number of admitted checks.
    pub(super) admitted: u64,
    /// The state of the counter after that.
    pub(super) snapshot: CounterSnapshot,
}

/// What has to be written to the database about one second of a counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owed {
    /// It was counted alone.
    Used(Late),
    /// It was prepaid and not used.
    Unspent(Late),
}

/// A refusal by the database. Until its retry time the answer to the same request stays the same,
/// except for what other processes give back, so after a moment the database is asked again.
struct Refused {
    quota: u64,
    cost: u64,
    snapshot: CounterSnapshot,
    retry_at: u64,
    /// The database decided between these two moments.
    asked: Instant,
    answered: Instant,
}

/// How long a refusal is answered without asking again.
const REFUSED_FOR: Duration = Duration::from_secs(1);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Counter {
    pub(super) fn new(policy: Policy, caller: &str, span: u32, fixed: bool) -> Self {
        Self {
            name: format!("{}/{caller}", policy.name()).into(),
            policy,
            window: Window {
                span: u64::from(span),
                fixed,
            },
            known: Mutex::new(CounterState {
                usage: Use::default(),
                rate: CheckRate::new(Instant::now()),
                seen_at: Instant::now(),
                prepaid: None,
                unspent: Vec::new(),
                refused: None,
                listed: false,
                settling: false,
            }),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// Decides without the database: admits what has been paid for, and refuses while an earlier
    /// refusal still holds.
    pub(super) fn decide_at_once(&self, now: Instant, quota: u64, cost: u64) -> Option<Decision> {
        let mut known = self.known();
        known.rate.count(now);
        let snapshot = known.spend(now, quota, cost);
        let snapshot = snapshot.or_else(|| known.refuse(now, quota, cost))?;
        Some(self.decision(quota, &snapshot))
    }

    /// Admits a check that had to wait, if it has been paid for meanwhile.
    pub(super) fn spend(&self, now: Instant, quota: u64, cost: u64) -> Option<Decision> {
        let snapshot = self.known().spend(now, quota, cost)?;
        Some(self.decision(quota, &snapshot))
    }

    /// Returns what to prepay along with waiting checks.
    pub(super) fn ahead(&self, now: Instant, quota: u64, cost: u64) -> Ahead {
        let known = &mut *self.known();
        match known.usage.seen() {
            Some(seen) if cost == 1 => {
                let ago = now - known.seen_at;
                known.rate.ahead(now, &seen, ago, quota, self.window)
            }
            _ => Ahead::default(),
        }
    }

    /// Records the database's decision on `waiting` checks and those `ahead`, requested at `asked`.
    /// Returns whether the counter has to be put on the list of counters whose prepaid checks have
    /// to be settled.
    pub(super) fn see(
        &self,
        verdict: &Verdict,
        (waiting, ahead): (u64, Ahead),
        (quota, cost): (u64, u64),
        asked: Instant,
    ) -> bool {
        let (snapshot, answered) = (verdict.snapshot, Instant::now());
        let known = &mut *self.known();
        known.usage.see(snapshot);
        known.seen_at = answered;
        if let Some(retry_at) = snapshot.retry_at.filter(|_| verdict.admitted < waiting) {
            known.refused = Some(Refused {
                quota,
                cost,
                snapshot,
                retry_at,
                asked,
                answered,
            });
        }
        let paid = verdict.admitted.saturating_sub(waiting);
        if paid > 0 {
            known.put_back();
            let snapshot = CounterSnapshot {
                retry_at: None,
                ..snapshot
            };
            let second = second_of(snapshot.decided) + ahead.seconds;
            known.prepaid = Some(Prepaid {
                left: paid,
                second,
                quota,
                snapshot,
                asked,
                answered,
            });
        }
        let to_list = paid > 0 && !known.settling;
        known.settling |= to_list;
        to_list
    }

    /// Ends prepaid checks once their time is over by the `database`'s clock; without one, at once.
    /// Returns whether that is done.
    pub(super) fn settle(&self, database: Option<f64>) -> bool {
        let known = &mut *self.known();
        let is_over = |prepaid: &Prepaid| database.is_none_or(|now| prepaid.is_over(now));
        if known.prepaid.as_ref().is_some_and(is_over) {
            known.put_back();
        }
        known.settling = known.prepaid.is_some();
        !known.settling
    }

    /// Decides without the database. Also returns whether the counter has to be put on the list of
    /// counters with something to write.
    pub(super) fn decide_alone(&self, now: f64, quota: u64, cost: u64) -> (Decision, bool) {
        let mut known = self.known();
        let snapshot = known.usage.decide_alone(self.window, now, quota, cost);
        let to_list = !known.listed && snapshot.retry_at.is_none();
        known.listed |= to_list;
        drop(known);
        (self.decision(quota, &snapshot), to_list)
    }

    /// Returns what has to be written, and takes the counter off the list. Use counts until it is
    /// written. Unspent checks are returned only once: given back twice, they would let too much
    /// through; never given back, they only count until their window ends.
    pub(super) fn take_up(&self) -> Vec<Owed> {
        let known = &mut *self.known();
        known.listed = false;
        let used = known.usage.late().iter().copied().map(Owed::Used);
        let unspent = known.unspent.drain(..).map(Owed::Unspent);
        used.chain(unspent).collect()
    }

    /// Records what has been written.
    pub(super) fn wrote(&self, written: Owed, now: f64) {
        if let Owed::Used(late) = written {
            self.known().usage.wrote(late, now);
        }
    }

    /// Whether the counter owes something and is not on the list yet; then it has to be put there.
    pub(super) fn to_list(&self) -> bool {
        let known = &mut *self.known();
        let owes = !known.usage.late().is_empty() || !known.unspent.is_empty();
        let to_list = !known.listed && owes;
        known.listed |= to_list;
        to_list
    }

    /// Converts a counter's state to a decision.
    pub(super) fn decision(&self, quota: u64, snapshot: &CounterSnapshot) -> Decision {
        let until = |second: u64| seconds_until(second, snapshot.decided);
        Decision {
            policy: self.policy,
            quota,
            window: self.window.span,
            remaining: quota.saturating_sub(snapshot.used),
            reset: until(snapshot.eases_at).min(self.window.span),
            retry_after: snapshot.retry_at.map(until),
        }
    }

    fn known(&self) -> MutexGuard<'_, CounterState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CounterState {
    fn spend(&mut self, now: Instant, quota: u64, cost: u64) -> Option<CounterSnapshot> {
        let prepaid = self.prepaid.as_mut().filter(|_| cost == 1)?;
        prepaid.spend(now, quota)
    }

    fn refuse(&mut self, now: Instant, quota: u64, cost: u64) -> Option<CounterSnapshot> {
        let refused = self.refused.as_ref()?;
        let decided = refused.snapshot.decided;
        // The database's time now lies between these two.
        let earliest = decided + now.duration_since(refused.answered).as_secs_f64();
        let latest = decided + now.duration_since(refused.asked).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit 52 bits")]
        let holds =
            latest < refused.retry_at as f64 && now.duration_since(refused.asked) < REFUSED_FOR;
        if !holds {
            self.refused = None;
            return None;
        }
        let same = refused.quota == quota && refused.cost == cost;
        same.then_some(CounterSnapshot {
            decided: earliest,
            ..refused.snapshot
        })
    }

    fn put_back(&mut self) {
        self.unspent
            .extend(self.prepaid.take().and_then(Prepaid::unspent));
    }
}

/// Whole seconds, rounded up, and at least one: a client that waits this long is not too early.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds since 1970 fit 52 bits, and a negative wait becomes 0"
)]
fn seconds_until(second: u64, now: f64) -> u64 {
    ((second as f64 - now).ceil() as u64).max(1)
}
