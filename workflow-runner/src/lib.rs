//! Trigger events become durable runs; every event is pushed to sockets and webhook receivers.
//!
//! Five parts that know nothing of each other follow the log: [`runs`] and their
//! [`runs::triggers`], [`webhooks`], [`places`] and [`ws`]. They only share the [`leases`] by which several processes divide the work, what is
//! known of [`people`], and the client for [`targets`] that users name. Whatever one of them does
//! that others must know, it appends.

pub mod leases;
pub mod people;
pub mod places;
pub mod runs;
mod settings;
pub mod targets;
pub mod webhooks;
pub mod ws;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::Access;
use axum::Router;
use event_log::{EventLog, ReadError, TailError};
use service::Clock;
use service::health::Readiness;
use tokio_util::sync::CancellationToken;

use leases::Leases;
use people::Roll;
use runs::triggers;
use targets::Targets;
use ws::{Live, Tails};

pub use settings::RunnerSettings;

/// Into how many parts webhook endpoints are cut; the same in every process, for ever.
const WEBHOOK_PARTITIONS: u16 = 32;
/// The pause before a part that failed begins again.
const AGAIN: Duration = Duration::from_secs(1);

/// What the runner stands on.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Who may listen.
    pub access: Access,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// How it works.
    pub settings: RunnerSettings,
    /// Where it says whether it works.
    pub readiness: Readiness,
}

/// Why the runner could not begin or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// The accounts and circles cannot be read.
    #[error(transparent)]
    People(#[from] people::StartError),
    /// The HTTP client could not be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}

/// A runner that is ready to run.
pub struct Runner {
    dependencies: Dependencies,
    targets: Targets,
    live: Live,
    tails: Tails,
}

/// Makes a runner; sockets are served from here on, events are handed out once it runs.
pub async fn start(dependencies: Dependencies) -> Result<Runner, Error> {
    let Dependencies {
        log,
        access,
        clock,
        settings,
        ..
    } = dependencies.clone();
    let (live, tails) = Live::start(log, access, clock, settings.sockets).await?;
    Ok(Runner {
        dependencies,
        targets: Targets::new(settings.targets)?,
        live,
        tails,
    })
}

impl Runner {
    /// The sockets' route.
    pub fn router(&self) -> Router {
        ws::router(self.live.clone())
    }

    /// Carries out runs, delivers webhooks and feeds sockets until `shutdown`.
    ///
    /// # Errors
    /// Where the log cannot be followed for sockets, which would hide a loss from them. Runs and
    /// webhooks begin again after any fault.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let stop = shutdown.child_token();
        let runs = keep_up(
            "runs",
            self.runs(stop.clone()),
            Arc::default(),
            stop.clone(),
        );
        let triggers = keep_up(
            "triggers",
            self.triggers(stop.clone()),
            Arc::default(),
            stop.clone(),
        );
        let delivering = self.announce_webhooks();
        let webhooks = keep_up(
            "webhooks",
            self.webhooks(stop.clone()),
            delivering,
            stop.clone(),
        );
        let places = keep_up(
            "places",
            self.places(stop.clone()),
            Arc::default(),
            stop.clone(),
        );
        let sockets = async {
            let ended = self.live.run(self.tails, stop.clone()).await;
            stop.cancel();
            ended
        };
        let ((), (), (), (), ended) = tokio::join!(
            Box::pin(runs),
            Box::pin(triggers),
            Box::pin(webhooks),
            Box::pin(places),
            Box::pin(sockets)
        );
        Ok(ended?)
    }

    fn runs(&self, shutdown: CancellationToken) -> impl Fn() -> Part<event_log::Error> + use<> {
        let dependencies = runs::Dependencies {
            log: self.dependencies.log.clone(),
            clock: Arc::clone(&self.dependencies.clock),
            roll: self.live.roll(),
            targets: self.targets.clone(),
            readiness: self.dependencies.readiness.clone(),
            settings: self.dependencies.settings.runs.clone(),
        };
        move || Box::pin(runs::run(dependencies.clone(), shutdown.clone()))
    }

    fn triggers(&self, shutdown: CancellationToken) -> impl Fn() -> Part<triggers::Error> + use<> {
        let (dependencies, roll) = (self.dependencies.clone(), self.live.roll());
        move || {
            let (dependencies, roll) = (dependencies.clone(), roll.clone());
            Box::pin(set_off(dependencies, roll, shutdown.clone()))
        }
    }

    fn webhooks(&self, shutdown: CancellationToken) -> impl Fn() -> Part<webhooks::Error> + use<> {
        let (dependencies, targets) = (self.dependencies.clone(), self.targets.clone());
        let roll = self.live.roll();
        move || {
            let (dependencies, targets) = (dependencies.clone(), targets.clone());
            let roll = roll.clone();
            Box::pin(deliver(dependencies, targets, roll, shutdown.clone()))
        }
    }

    fn places(&self, shutdown: CancellationToken) -> impl Fn() -> Part<places::Error> + use<> {
        let (dependencies, roll) = (self.dependencies.clone(), self.live.roll());
        move || {
            let (dependencies, roll) = (dependencies.clone(), roll.clone());
            Box::pin(watch_places(dependencies, roll, shutdown.clone()))
        }
    }

    fn announce_webhooks(&self) -> Arc<AtomicBool> {
        let delivering = Arc::new(AtomicBool::new(false));
        let shown = Arc::clone(&delivering);
        self.dependencies.readiness.add("webhooks", move || {
            let delivering = shown.load(Ordering::Relaxed);
            async move {
                delivering
                    .then_some(())
                    .ok_or_else(|| "not delivered at the moment".to_owned())
            }
        });
        delivering
    }
}

async fn deliver(
    dependencies: Dependencies,
    targets: Targets,
    roll: Roll,
    shutdown: CancellationToken,
) -> Result<(), webhooks::Error> {
    let Dependencies {
        log,
        clock,
        settings,
        ..
    } = dependencies;
    let ttl = settings.runs.lease;
    let leases = Leases::start(&log, webhooks::LEASES, WEBHOOK_PARTITIONS, ttl).await?;
    let dependencies = webhooks::Dependencies {
        log,
        roll,
        targets,
        leases,
        clock,
        settings: settings.webhooks,
    };
    Box::pin(webhooks::run(dependencies, shutdown)).await
}

async fn set_off(
    dependencies: Dependencies,
    roll: Roll,
    shutdown: CancellationToken,
) -> Result<(), triggers::Error> {
    let Dependencies {
        log,
        clock,
        settings,
        ..
    } = dependencies;
    let ttl = settings.runs.lease;
    let leases = Leases::start(&log, triggers::LEASES, triggers::PARTITIONS, ttl).await?;
    let dependencies = triggers::Dependencies {
        log,
        roll,
        leases,
        clock,
        settings: settings.runs,
    };
    Box::pin(triggers::run(dependencies, shutdown)).await
}

async fn watch_places(
    dependencies: Dependencies,
    roll: Roll,
    shutdown: CancellationToken,
) -> Result<(), places::Error> {
    let Dependencies {
        log,
        clock,
        settings,
        ..
    } = dependencies;
    let ttl = settings.runs.lease;
    let leases = Leases::start(&log, places::LEASES, places::PARTITIONS, ttl).await?;
    let dependencies = places::Dependencies {
        log,
        roll,
        leases,
        clock,
        settings: settings.places,
    };
    places::run(dependencies, shutdown).await
}

/// One part at work.
type Part<E> = futures::future::BoxFuture<'static, Result<(), E>>;

/// Begins a part again whenever it fails, until `shutdown`.
async fn keep_up<F, E>(
    name: &'static str,
    part: impl Fn() -> F,
    up: Arc<AtomicBool>,
    shutdown: CancellationToken,
) where
    F: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    loop {
        up.store(true, Ordering::Relaxed);
        let ended = part().await;
        up.store(false, Ordering::Relaxed);
        match ended {
            Ok(()) => return,
            Err(error) => tracing::error!(part = name, %error, "A part failed and begins again"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
