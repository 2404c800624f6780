//! Trigger events become durable runs; every event is pushed to sockets and webhook receivers.
//!
//! Five independent parts follow the log: [`runs`] and their [`runs::triggers`], [`webhooks`],
//! [`geofence`] and [`live`]. They share only the [`leases`] that divide the work between
//! processes, the `checkpoints` they resume from, the directory of [`people`], the client for
//! [`targets`] that users name, the rule for what `erasure` leaves to show, and the helpers `retry`
//! and `task`. Whatever one of them does that others must know, it appends.

mod checkpoints;
mod erasure;
pub mod geofence;
pub mod leases;
pub mod live;
pub mod people;
mod retry;
pub mod runs;
mod settings;
pub mod targets;
mod task;
pub mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::Access;
use axum::Router;
use event_log::{EventLog, ReadError, TailError};
use futures::future::join_all;
use service::Clock;
use service::health::Readiness;
use tokio_util::sync::CancellationToken;

use leases::{Group, Work};
use live::{Live, Tails};
use runs::triggers;
use targets::Targets;
use task::Task;

pub use settings::RunnerSettings;

/// The pause before a failed part is restarted.
const AGAIN: Duration = Duration::from_secs(1);

/// The name of the webhooks' readiness check.
const WEBHOOKS_CHECK: &str = "workflow-runner/webhooks";

/// Dependencies of the runner.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Who may listen.
    pub access: Access,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The settings.
    pub settings: RunnerSettings,
    /// Where the runner reports whether it works.
    pub readiness: Readiness,
    /// Ports of Waypost's own servers, see [`targets::own_ports`].
    pub own_ports: Vec<u16>,
}

/// Why the runner could not start or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log does not answer.
    #[error("cannot read where the log ends: {0}")]
    Read(#[from] ReadError),
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// The accounts and circles cannot be read.
    #[error("cannot read who there is: {0}")]
    People(#[from] people::StartError),
    /// The work cannot be shared with other runners.
    #[error("cannot share the work with other runners: {0}")]
    Group(#[from] event_log::Error),
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be created: {0}")]
    Client(#[from] reqwest::Error),
}

/// A runner that is ready to run.
pub struct Runner {
    dependencies: Dependencies,
    targets: Targets,
    renderer: runs::Renderer,
    open_runs: runs::OpenRuns,
    group: Group,
    live: Live,
    tails: Tails,
}

/// Creates a runner. Sockets are served from here on, events are delivered once it runs; until
/// then, its checks fail.
pub async fn start(dependencies: Dependencies) -> Result<Runner, Error> {
    let Dependencies {
        log,
        access,
        clock,
        settings,
        readiness,
        own_ports,
    } = dependencies.clone();
    let renderer = runs::Renderer::new(log.clone(), &settings.templates);
    let open_runs = runs::OpenRuns::at_most(settings.runs.open.per_organization);
    let targets = Targets::new(settings.targets, own_ports)?;
    access.announce(&readiness);
    let (live, tails) = Live::start(log.clone(), access, clock, settings.sockets).await?;
    // Last, since owned partitions wait until the runner runs.
    let group = Group::join(&log, settings.runs.lease).await?;
    for check in [runs::CHECK, triggers::CHECK, WEBHOOKS_CHECK] {
        // Replaced by the part itself.
        readiness.add(check, || std::future::ready(Err("starting".to_owned())));
    }
    readiness.add_log(move || log.is_connected());
    Ok(Runner {
        dependencies,
        targets,
        renderer,
        open_runs,
        group,
        live,
        tails,
    })
}

impl Runner {
    /// The sockets' route.
    pub fn router(&self) -> Router {
        live::router(self.live.clone())
    }

    /// Carries out runs, delivers webhooks and feeds sockets until `shutdown`.
    ///
    /// # Errors
    /// If the log cannot be followed for sockets, which would hide a loss from them. Runs and
    /// webhooks are restarted after any fault.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let stop = shutdown.child_token();
        let delivering = self.announce_webhooks();
        let deliver = move |dependencies, stop| {
            let delivering = Arc::clone(&delivering);
            async move {
                let delivery = Box::pin(webhooks::run(dependencies, stop));
                shown(&delivering, delivery).await
            }
        };
        // The other parts keep working while running steps finish: these are awaited first, and
        // everything is given up together.
        let last = CancellationToken::new();
        // Each in its own task, so that a busy part does not hold up the others.
        let runs = keep_up("runs", runs::run, self.runs(), &stop);
        let others = [
            keep_up("triggers", triggers::run, self.triggers(), &last),
            keep_up("webhooks", deliver, self.webhooks(), &last),
            keep_up("places", geofence::run, self.geofence(), &last),
        ];
        let (live, tails, group) = (self.live, self.tails, self.group);
        let parts = async {
            runs.await;
            last.cancel();
            join_all(others).await;
            group.leave().await;
        };
        let sockets = Task::spawn(async move {
            let ended = live.run(tails, stop.clone()).await;
            stop.cancel();
            ended
        });
        let ((), ended) = tokio::join!(parts, sockets);
        Ok(ended?)
    }

    fn runs(&self) -> runs::Dependencies {
        let all = self.dependencies.clone();
        runs::Dependencies {
            log: all.log,
            leases: self.group.leases(Work::Runs),
            clock: all.clock,
            people: self.live.people(),
            targets: self.targets.clone(),
            readiness: all.readiness,
            renderer: self.renderer.clone(),
            settings: all.settings.runs,
            open_runs: self.open_runs.clone(),
        }
    }

    fn triggers(&self) -> triggers::Dependencies {
        let all = self.dependencies.clone();
        triggers::Dependencies {
            log: all.log,
            leases: self.group.leases(Work::Triggers),
            people: self.live.people(),
            clock: all.clock,
            readiness: all.readiness,
            renderer: self.renderer.clone(),
            settings: all.settings.runs,
            open_runs: self.open_runs.clone(),
        }
    }

    fn webhooks(&self) -> webhooks::Dependencies {
        let all = self.dependencies.clone();
        webhooks::Dependencies {
            log: all.log,
            leases: self.group.leases(Work::Webhooks),
            people: self.live.people(),
            targets: self.targets.clone(),
            clock: all.clock,
            settings: all.settings.webhooks,
        }
    }

    fn geofence(&self) -> geofence::Dependencies {
        let all = self.dependencies.clone();
        geofence::Dependencies {
            log: all.log,
            leases: self.group.leases(Work::Geofence),
            people: self.live.people(),
            clock: all.clock,
            settings: all.settings.geofence,
        }
    }

    fn announce_webhooks(&self) -> Arc<AtomicBool> {
        let delivering = Arc::new(AtomicBool::new(false));
        let shown = Arc::clone(&delivering);
        self.dependencies.readiness.add(WEBHOOKS_CHECK, move || {
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

/// Sets `at_work` while a part runs.
async fn shown<T>(at_work: &AtomicBool, part: impl Future<Output = T>) -> T {
    at_work.store(true, Ordering::Relaxed);
    let ended = part.await;
    at_work.store(false, Ordering::Relaxed);
    ended
}

/// Restarts a part whenever it fails, until `shutdown`.
fn keep_up<D, F, E>(
    name: &'static str,
    run: impl Fn(D, CancellationToken) -> F + Send + 'static,
    dependencies: D,
    shutdown: &CancellationToken,
) -> Task<()>
where
    D: Clone + Send + 'static,
    F: Future<Output = Result<(), E>> + Send,
    E: std::fmt::Display + Send,
{
    let shutdown = shutdown.clone();
    Task::spawn(async move {
        loop {
            match Box::pin(run(dependencies.clone(), shutdown.clone())).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(part = name, %error, "A component failed; restarting it");
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    })
}
