//! The read models' lag behind the log, observed from outside the services.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use event_log::EventLog;
use schemas::Log;
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const EVERY: Duration = Duration::from_secs(1);
/// Timeout of one observation. No response leaves a gap.
const TIMEOUT: Duration = Duration::from_millis(900);

/// One observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lag {
    /// Since the run began.
    pub(crate) seconds: f64,
    /// Events of the log that its slowest projection had not folded.
    pub(crate) events: u64,
}

/// A task that observes the lag every second.
pub(crate) struct Watch {
    seen: Arc<Mutex<Vec<Lag>>>,
    task: JoinHandle<()>,
}

impl Watch {
    pub(crate) fn begin(began: Instant, log: EventLog, database: String) -> Self {
        let seen = Arc::<Mutex<Vec<Lag>>>::default();
        let theirs = seen.clone();
        let task = tokio::spawn(async move {
            let mut connection = None;
            loop {
                tokio::time::sleep(EVERY).await;
                let looking = timeout(TIMEOUT, look(&log, &database, &mut connection));
                match looking.await {
                    Ok(Some(events)) => {
                        let seconds = began.elapsed().as_secs_f64();
                        let mut seen = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.push(Lag { seconds, events });
                    }
                    _ => connection = None,
                }
            }
        });
        Self { seen, task }
    }

    /// Stops, and returns all observations.
    pub(crate) fn end(self) -> Vec<Lag> {
        self.task.abort();
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn look(
    log: &EventLog,
    database: &str,
    connection: &mut Option<PgConnection>,
) -> Option<u64> {
    let end = log.end(Log::Events).await.ok()?.sequence();
    let connected = match connection.take() {
        Some(connected) => connected,
        None => PgConnection::connect(database).await.ok()?,
    };
    let connected = connection.insert(connected);
    let query = "SELECT min(sequence) FROM projection_checkpoints WHERE log = 'events'";
    let slowest: Option<i64> = sqlx::query_scalar(query).fetch_one(connected).await.ok()?;
    let slowest = u64::try_from(slowest?).unwrap_or_default();
    Some(end.saturating_sub(slowest))
}
