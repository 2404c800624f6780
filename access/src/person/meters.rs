//! The counters of persons, created on first use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemas::AccountId;

use crate::limit::{Counter, Limiter, Policy};

/// Number of counters at which unused ones are first searched for.
const FIRST_SWEEP: usize = 4_096;

/// A person's counter lives while it is used: what a process knows of a person's use matters only
/// within the hour. (The counts themselves are in Postgres.)
#[derive(Default)]
pub(super) struct Meters(Mutex<MeterTable>);

#[derive(Default)]
struct MeterTable {
    counters: HashMap<(AccountId, Policy), Meter>,
    sweep_at: usize,
}

struct Meter {
    counter: Arc<Counter>,
    used: tokio::time::Instant,
}

impl Meters {
    pub(super) fn counter(
        &self,
        limiter: &Limiter,
        account: AccountId,
        policy: Policy,
    ) -> Arc<Counter> {
        let now = tokio::time::Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.counters.len() >= known.sweep_at.max(FIRST_SWEEP) {
            let window = limiter.window();
            let in_use = |meter: &Meter| {
                Arc::strong_count(&meter.counter) > 1 || now.duration_since(meter.used) <= window
            };
            known.counters.retain(|_, meter| in_use(meter));
            known.sweep_at = known.counters.len() * 2;
        }
        let meter = known
            .counters
            .entry((account, policy))
            .or_insert_with(|| Meter {
                counter: Arc::new(limiter.counter(policy, &account.to_string())),
                used: now,
            });
        meter.used = now;
        meter.counter.clone()
    }
}
