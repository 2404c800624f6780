//! Limits: exact over any number of processes, for the price of a shared round trip.
//!
//! Checks that wait are gathered and decided together in Postgres (function `admit`), on its clock.
//! While Postgres is unavailable, each process continues with the use it last saw and its own
//! counts, which are written back when Postgres is available again.

mod counter;
mod decision;
mod gather;
mod outage;
mod postgres;
mod prepaid;
mod use_of;
mod worker;

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::LimitSettings;

pub use counter::Counter;
pub use decision::{Decision, Policy};
use gather::Waiting;
use outage::Outage;
use postgres::Server;

/// Checks that may wait at once; more than the connections that one process serves.
const QUEUE: usize = 65_536;

/// Decides which requests still fit into their limits. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter {
    queue: mpsc::Sender<Waiting>,
    outage: Arc<Outage>,
    settings: Arc<LimitSettings>,
}

impl Limiter {
    /// Starts the limiter on connections of its own to the database that `pool` names. It works
    /// until it is dropped; `shutdown` only ends its housekeeping.
    pub fn start(pool: &PgPool, settings: &LimitSettings, shutdown: CancellationToken) -> Self {
        let server = Server::of(pool, settings);
        let outage = Arc::new(Outage::default());
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(worker::run(waiting, server.clone(), outage.clone()));
        let maintenance = outage::maintain(outage.clone(), server, settings.retry, shutdown);
        tokio::spawn(maintenance);
        Self {
            queue,
            outage,
            settings: Arc::new(settings.clone()),
        }
    }

    /// The counter of a caller under a policy. A caller has one counter for each policy; two of the
    /// same name each know less than one would.
    pub fn counter(&self, policy: Policy, caller: &str) -> Counter {
        let (span, fixed) = match policy {
            Policy::Minute => (self.settings.minute, true),
            Policy::Hourly | Policy::Requests | Policy::Locations => (self.settings.window, false),
        };
        Counter::new(policy, caller, span, fixed)
    }

    /// The rolling window of limits.
    pub fn window(&self) -> std::time::Duration {
        std::time::Duration::from_secs(u64::from(self.settings.window))
    }

    /// Counts `cost` against a counter if it fits as a whole under `quota`. A cost above the quota
    /// never fits: the caller has to report that before asking.
    pub async fn check(&self, counter: &Arc<Counter>, quota: u32, cost: u32) -> Decision {
        let (quota, cost) = (u64::from(quota), u64::from(cost.max(1)));
        if let Some(decision) = counter.decide_at_once(Instant::now(), quota, cost) {
            return decision;
        }
        if !self.outage.is_on() {
            let (answer, decision) = oneshot::channel();
            let check = Waiting {
                counter: counter.clone(),
                quota,
                cost,
                answer,
            };
            if self.queue.send(check).await.is_ok()
                && let Ok(decision) = decision.await
            {
                return decision;
            }
        }
        self.outage.decide(counter, quota, cost)
    }

    /// Why this process currently counts alone, if it does.
    pub fn outage(&self) -> Option<String> {
        self.outage.reason()
    }
}
