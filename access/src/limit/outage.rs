//! Counts alone while Postgres is unavailable, and writes the counts back afterwards; gives back
//! prepaid checks that were not used.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::counter::{Counter, Owed};
use super::decision::Decision;
use super::postgres::{self, Away, Server};

/// Debts written in one statement.
const WRITTEN_AT_ONCE: usize = 1_000;
const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// How soon after their last second unspent checks are given back.
const SETTLE_EVERY: Duration = Duration::from_millis(200);

/// Whether Postgres is unavailable, and what has to be written once it is back.
#[derive(Debug, Default)]
pub(super) struct Outage {
    on: AtomicBool,
    reason: Mutex<Option<String>>,
    /// Counters with something to write; each is listed once.
    listed: Mutex<Vec<Arc<Counter>>>,
    /// Counters with prepaid checks; each is listed once.
    prepaid: Mutex<Vec<Arc<Counter>>>,
    /// The database's time as last seen, and when that was.
    time: Mutex<Option<(f64, Instant)>>,
    work: Notify,
}

impl Outage {
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    pub(super) fn reason(&self) -> Option<String> {
        locked(&self.reason).clone()
    }

    pub(super) fn begin(&self, away: &Away) {
        if self.on.swap(true, Ordering::AcqRel) {
            return;
        }
        *locked(&self.reason) = Some(away.to_string());
        tracing::warn!(
            error = %away,
            "Postgres does not answer: limits continue with the last known counts"
        );
        metrics::gauge!("waypost_limits_alone").set(1);
        self.work.notify_one();
    }

    fn end(&self) {
        if self.on.swap(false, Ordering::AcqRel) {
            *locked(&self.reason) = None;
            tracing::info!("Postgres is back: limits are exact again");
            metrics::gauge!("waypost_limits_alone").set(0);
        }
    }

    pub(super) fn see_time(&self, decided: f64) {
        *locked(&self.time) = Some((decided, Instant::now()));
    }

    /// The database's time as far as this process can tell.
    #[expect(
        clippy::disallowed_methods,
        reason = "it stands in for a clock that nobody passes in: the database's"
    )]
    fn now(&self) -> f64 {
        let seen = *locked(&self.time);
        match seen {
            Some((decided, at)) => decided + at.elapsed().as_secs_f64(),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
        }
    }

    /// Decides without Postgres and keeps what was counted.
    pub(super) fn decide(&self, counter: &Arc<Counter>, quota: u64, cost: u64) -> Decision {
        let (decision, to_list) = counter.decide_alone(self.now(), quota, cost);
        if to_list {
            locked(&self.listed).push(counter.clone());
            // The outage may have ended since it was checked: then nothing else would write this.
            self.work.notify_one();
        }
        decision
    }

    /// Remembers that a counter has prepaid checks.
    pub(super) fn settle_later(&self, counter: &Arc<Counter>) {
        locked(&self.prepaid).push(counter.clone());
    }

    /// Lists unused prepaid checks whose time is over, or all of them (`all`). Returns whether
    /// there is anything to write.
    fn settle(&self, all: bool) -> bool {
        let now = (!all).then(|| self.now());
        let prepaid = std::mem::take(&mut *locked(&self.prepaid));
        let (settled, open): (Vec<_>, Vec<_>) =
            prepaid.into_iter().partition(|counter| counter.settle(now));
        locked(&self.prepaid).extend(open);
        let owing = settled.into_iter().filter(|counter| counter.to_list());
        let mut listed = locked(&self.listed);
        listed.extend(owing);
        !listed.is_empty()
    }

    /// Writes what every counter on the list owes.
    async fn write_back(
        &self,
        server: &Server,
        kept: &mut Option<PgConnection>,
    ) -> Result<(), Away> {
        let counters = std::mem::take(&mut *locked(&self.listed));
        let owed = counters.iter().flat_map(|counter| {
            let owed = counter.take_up();
            owed.into_iter().map(|owed| (counter.clone(), owed))
        });
        let mut owed: Vec<(Arc<Counter>, Owed)> = owed.collect();
        owed.sort_by_key(|(counter, _)| counter.window());
        let result = self.write(&owed, server, kept).await;
        if result.is_err() {
            let again = counters.into_iter().filter(|counter| counter.to_list());
            locked(&self.listed).extend(again);
        }
        result
    }

    async fn write(
        &self,
        owed: &[(Arc<Counter>, Owed)],
        server: &Server,
        kept: &mut Option<PgConnection>,
    ) -> Result<(), Away> {
        let of_one_window = owed.chunk_by(|(one, _), (other, _)| one.window() == other.window());
        for part in of_one_window.flat_map(|owed| owed.chunks(WRITTEN_AT_ONCE)) {
            let window = part[0].0.window();
            let write = async |connection: &mut PgConnection| {
                postgres::count_back(connection, window, part).await
            };
            server.ask(kept, write).await?;
            let now = self.now();
            for (counter, owed) in part {
                counter.wrote(*owed, now);
            }
        }
        Ok(())
    }
}

/// Tries Postgres again during an outage, writes back what was counted alone, gives back unused
/// prepaid checks, and deletes unused counters.
pub(super) async fn maintain(
    outage: Arc<Outage>,
    server: Server,
    retry: Duration,
    shutdown: CancellationToken,
) {
    let mut kept = None;
    let mut sweep = interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut settle = interval(SETTLE_EVERY);
    settle.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return give_back(&outage, &server, &mut kept, true).await,
            _ = settle.tick() => give_back(&outage, &server, &mut kept, false).await,
            () = outage.work.notified() => heal(&outage, &server, &mut kept, retry, &shutdown).await,
            _ = sweep.tick() => sweep_all(&outage, &server, &mut kept).await,
        }
    }
}

async fn heal(
    outage: &Outage,
    server: &Server,
    kept: &mut Option<PgConnection>,
    retry: Duration,
    shutdown: &CancellationToken,
) {
    loop {
        let attempt = async {
            let now = server.ask(kept, postgres::probe).await?;
            outage.see_time(now);
            outage.write_back(server, kept).await?;
            outage.end();
            // What was counted alone during the first writing.
            outage.write_back(server, kept).await
        };
        match attempt.await {
            Ok(()) => return,
            Err(away) => tracing::debug!(error = %away, "Postgres still does not answer"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(retry) => (),
        }
    }
}

async fn give_back(outage: &Outage, server: &Server, kept: &mut Option<PgConnection>, all: bool) {
    if outage.settle(all)
        && !outage.is_on()
        && let Err(away) = outage.write_back(server, kept).await
    {
        outage.begin(&away);
    }
}

async fn sweep_all(outage: &Outage, server: &Server, kept: &mut Option<PgConnection>) {
    if outage.is_on() {
        return;
    }
    loop {
        match server.ask(kept, postgres::sweep).await {
            Ok(true) => (),
            Ok(false) => return,
            Err(away) => {
                tracing::debug!(error = %away, "Old counters could not be deleted");
                return;
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
