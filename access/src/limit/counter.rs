//! One caller's use under one policy, as this process knows it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::decision::{Decision, Policy};
use super::use_of::{Late, Standing, Use, Window};

/// A counter. There is one in a process for each caller and policy.
pub struct Counter {
    name: Arc<str>,
    policy: Policy,
    window: Window,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    usage: Use,
    refused: Option<Refused>,
    /// Whether the counter is on the list of those that have something to write.
    listed: bool,
}

/// A refusal by the database. Until its time has come the answer to the same request stays the
/// same: other requests can only add to the use.
struct Refused {
    quota: u64,
    cost: u64,
    standing: Standing,
    retry_at: u64,
    /// The decision was made between these two moments.
    asked: Instant,
    answered: Instant,
}

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
            known: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// Refuses without asking anyone, while an earlier refusal still holds.
    pub(super) fn refuse_at_once(&self, now: Instant, quota: u64, cost: u64) -> Option<Decision> {
        let mut known = self.known();
        let refused = known.refused.as_ref()?;
        let decided = refused.standing.decided;
        // The database's time now lies between these two.
        let earliest = decided + now.duration_since(refused.answered).as_secs_f64();
        let latest = decided + now.duration_since(refused.asked).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit 52 bits")]
        let holds = latest < refused.retry_at as f64;
        if !holds {
            known.refused = None;
            return None;
        }
        let same = refused.quota == quota && refused.cost == cost;
        same.then(|| {
            let standing = Standing {
                decided: earliest,
                ..refused.standing
            };
            self.decision(quota, &standing)
        })
    }

    /// Takes note of what the database decided, asked at `asked`.
    pub(super) fn see(&self, standing: Standing, quota: u64, cost: u64, asked: Instant) {
        let mut known = self.known();
        known.usage.see(standing);
        if let Some(retry_at) = standing.retry_at {
            known.refused = Some(Refused {
                quota,
                cost,
                standing,
                retry_at,
                asked,
                answered: Instant::now(),
            });
        }
    }

    /// Decides without the database. Says too whether the counter has to be put on the list of
    /// those that have something to write.
    pub(super) fn decide_alone(&self, now: f64, quota: u64, cost: u64) -> (Decision, bool) {
        let mut known = self.known();
        let standing = known.usage.decide_alone(self.window, now, quota, cost);
        let to_list = !known.listed && standing.retry_at.is_none();
        known.listed |= to_list;
        drop(known);
        (self.decision(quota, &standing), to_list)
    }

    /// What waits to be written, taken off the list but still counting until it is written.
    pub(super) fn take_up(&self) -> Vec<Late> {
        let mut known = self.known();
        known.listed = false;
        known.usage.late().to_vec()
    }

    /// Takes note of what has been written.
    pub(super) fn wrote(&self, written: Late, now: f64) {
        self.known().usage.wrote(written, now);
    }

    /// Whether the counter has to be put on the list again after a failure to write.
    pub(super) fn list_again(&self) -> bool {
        let mut known = self.known();
        let to_list = !known.listed && !known.usage.late().is_empty();
        known.listed |= to_list;
        to_list
    }

    /// Says how a counter stands the way answers do.
    pub(super) fn decision(&self, quota: u64, standing: &Standing) -> Decision {
        let until = |second: u64| seconds_until(second, standing.decided);
        Decision {
            policy: self.policy,
            quota,
            window: self.window.span,
            remaining: quota.saturating_sub(standing.used),
            reset: until(standing.eases_at).min(self.window.span),
            retry_after: standing.retry_at.map(until),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whole seconds, rounded up, and at least one: a client that waits so long is not too early.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds since 1970 fit 52 bits, and a negative wait becomes 0"
)]
fn seconds_until(second: u64, now: f64) -> u64 {
    ((second as f64 - now).ceil() as u64).max(1)
}
