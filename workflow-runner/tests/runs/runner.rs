//! Runners, each like one process.

use std::fmt::Display;
use std::sync::Arc;

use event_log::EventLog;
use service::SystemClock;
use service::health::Readiness;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use workflow_runner::leases::{Group, Leases, Work};
use workflow_runner::people::People;
use workflow_runner::runs::{
    self, Dependencies, OpenRuns, Renderer, RunSettings, TemplateSettings, triggers,
};
use workflow_runner::targets::{TargetSettings, Targets};

use crate::world::{LOOK, World, settings};

/// A runner like that of one process.
pub(crate) struct Runner {
    task: JoinHandle<()>,
    shutdown: CancellationToken,
    pub(crate) readiness: Readiness,
}

impl Runner {
    pub(crate) async fn start(log: EventLog, settings: RunSettings, allow_private: bool) -> Self {
        Self::begin(log, settings, allow_private, true).await
    }

    /// A runner that judges no events.
    pub(crate) async fn without_triggers(world: &World) -> Self {
        Self::begin(world.another_log().await, settings(), true, false).await
    }

    async fn begin(
        log: EventLog,
        settings: RunSettings,
        allow_private: bool,
        with_triggers: bool,
    ) -> Self {
        let shutdown = CancellationToken::new();
        let readiness = Readiness::default();
        let (stop, ready) = (shutdown.clone(), readiness.clone());
        let judged = readiness.clone();
        let open = if allow_private { "1" } else { "0" };
        let open = open.parse().unwrap();
        // The whole runner starts with these once, and does not retry them: a test that takes the
        // log away does so once they are ready.
        let (people, tail) = People::start(&log).await.unwrap();
        let group = Group::join(&log, settings.lease).await.unwrap();
        let task = tokio::spawn(async move {
            let clock = Arc::new(SystemClock);
            let open_runs = OpenRuns::at_most(settings.open.per_organization);
            let counted = open_runs.clone();
            let shared = (group.leases(Work::Triggers), counted, judged);
            let setting_off = set_off(&log, &people, &settings, shared, stop.clone());
            let judging = async {
                if with_triggers {
                    setting_off.await;
                }
            };
            let carrying_out = Dependencies {
                log: log.clone(),
                leases: group.leases(Work::Runs),
                clock,
                people: people.clone(),
                targets: Targets::new(TargetSettings { open }, Vec::new()).unwrap(),
                readiness: ready,
                renderer: Renderer::new(log.clone(), &TemplateSettings::default()),
                settings: settings.clone(),
                open_runs,
            };
            let running = keep_up("Runs", || runs::run(carrying_out.clone(), stop.clone()));
            let work = async {
                tokio::join!(running, judging);
                group.leave().await;
            };
            tokio::select! {
                () = work => {}
                error = people.follow(tail) => panic!("{error}"),
            }
        });
        Self {
            task,
            shutdown,
            readiness,
        }
    }

    /// Ends it like a clean shutdown.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }

    /// Ends it like kill -9: nothing is finished, reported or given up.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Judges events like one process does.
async fn set_off(
    log: &EventLog,
    people: &People,
    settings: &RunSettings,
    (leases, open_runs, readiness): (Leases, OpenRuns, Readiness),
    stop: CancellationToken,
) {
    let dependencies = triggers::Dependencies {
        log: log.clone(),
        leases,
        people: people.clone(),
        clock: Arc::new(SystemClock),
        readiness,
        renderer: Renderer::new(log.clone(), &TemplateSettings::default()),
        settings: settings.clone(),
        open_runs,
    };
    keep_up("Triggers", || {
        triggers::run(dependencies.clone(), stop.clone())
    })
    .await;
}

/// Like the whole runner: a part that cannot start because the log was unavailable is restarted.
async fn keep_up<F, E>(part: &str, run: impl Fn() -> F)
where
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    while let Err(error) = Box::pin(run()).await {
        eprintln!("{part} begin again: {error}");
        tokio::time::sleep(LOOK).await;
    }
}
