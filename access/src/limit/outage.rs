//! Going on while Postgres is away, and making up for it afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::counter::Counter;
use super::decision::Decision;
use super::postgres::{self, Away, Server};
use super::use_of::Late;

/// Late uses written in one statement.
const WRITTEN_AT_ONCE: usize = 1_000;
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// Whether Postgres is away, and what has to be written once it is back.
#[derive(Debug, Default)]
pub(super) struct Outage {
    on: AtomicBool,
    reason: Mutex<Option<String>>,
    /// Counters with use that is not written; each stands here once.
    listed: Mutex<Vec<Arc<Counter>>>,
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
        tracing::warn!(error = %away, "Postgres gives no answer: limits go on with the counts last seen");
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
            // The outage may have ended since it was looked at: then nobody else would write this.
            self.work.notify_one();
        }
        decision
    }

    /// Writes the late use of every counter on the list.
    async fn write_back(
        &self,
        server: &Server,
        kept: &mut Option<PgConnection>,
    ) -> Result<(), Away> {
        let counters = std::mem::take(&mut *locked(&self.listed));
        let late = counters.iter().flat_map(|counter| {
            let late = counter.take_up();
            late.into_iter().map(|late| (counter.clone(), late))
        });
        let mut late: Vec<(Arc<Counter>, Late)> = late.collect();
        late.sort_by_key(|(counter, _)| counter.window());
        let result = self.write(&late, server, kept).await;
        if result.is_err() {
            let again = counters.into_iter().filter(|counter| counter.list_again());
            locked(&self.listed).extend(again);
        }
        result
    }

    async fn write(
        &self,
        late: &[(Arc<Counter>, Late)],
        server: &Server,
        kept: &mut Option<PgConnection>,
    ) -> Result<(), Away> {
        let of_one_window = late.chunk_by(|(one, _), (other, _)| one.window() == other.window());
        for part in of_one_window.flat_map(|late| late.chunks(WRITTEN_AT_ONCE)) {
            let window = part[0].0.window();
            let write = async |connection: &mut PgConnection| {
                postgres::count_back(connection, window, part).await
            };
            server.ask(kept, write).await?;
            let now = self.now();
            for (counter, late) in part {
                counter.wrote(*late, now);
            }
        }
        Ok(())
    }
}

/// Tries Postgres again during an outage, writes back what was counted alone, and sweeps away
/// counters that nobody uses.
pub(super) async fn keep_house(
    outage: Arc<Outage>,
    server: Server,
    retry: Duration,
    shutdown: CancellationToken,
) {
    let mut kept = None;
    let mut sweep = interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
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
            Err(away) => tracing::debug!(error = %away, "Postgres still gives no answer"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(retry) => (),
        }
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
                tracing::debug!(error = %away, "Counters were not swept");
                return;
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
