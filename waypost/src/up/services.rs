//! All services on one log, one set of pools and one router.

use std::sync::Arc;

use access::{Access, LimitSettings};
use axum::Router;
use command_api::accounts::AccountSettings;
use command_api::{CommandSettings, Commands};
use event_log::{EventLog, Keyring, LogSettings};
use projector::ProjectorSettings;
use query_api::QuerySettings;
use service::health::Readiness;
use service::settings::{CommonSettings, DatabaseSettings};
use service::{Clock, SystemClock, database};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow_runner::RunnerSettings;

use crate::Failure;

/// The settings of all services.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Settings {
    #[command(flatten)]
    pub(super) log: LogSettings,
    #[command(flatten)]
    limits: LimitSettings,
    #[command(flatten)]
    commands: CommandSettings,
    #[command(flatten)]
    accounts: AccountSettings,
    #[command(flatten)]
    queries: QuerySettings,
    #[command(flatten)]
    projector: ProjectorSettings,
    #[command(flatten)]
    runner: RunnerSettings,
}

/// The services, running.
pub(super) struct Services {
    pub(super) commands: Commands,
    pub(super) access: Access,
    pub(super) readiness: Readiness,
    pub(super) router: Router,
    tasks: JoinSet<Result<(), Failure>>,
}

impl Services {
    pub(super) async fn start(
        settings: Settings,
        common: &CommonSettings,
        database: &DatabaseSettings,
        shutdown: &CancellationToken,
    ) -> Result<Self, Failure> {
        let log = EventLog::connect(&settings.log, Keyring::load(&common.home)?).await?;
        let pool = database::connect(database)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let access = Access::start(
            &log,
            &pool,
            settings.limits,
            clock.clone(),
            shutdown.clone(),
        )
        .await?;
        let readiness = Readiness::default();
        let mut tasks = JoinSet::new();

        let projector = projector::Dependencies {
            log: log.clone(),
            pool: pool.clone(),
            clock: clock.clone(),
            settings: settings.projector,
            readiness: readiness.clone(),
        };
        let projecting = projector::run(projector, shutdown.clone());
        tasks.spawn(async move { Ok(projecting.await?) });

        let runner = workflow_runner::Dependencies {
            log: log.clone(),
            access: access.clone(),
            clock: clock.clone(),
            settings: settings.runner.clone(),
            readiness: readiness.clone(),
            own_ports: workflow_runner::targets::own_ports(&log, pool.connect_options().get_port()),
        };
        let runner = workflow_runner::start(runner).await?;
        let sockets = runner.router();
        let stop = shutdown.clone();
        tasks.spawn(async move { Ok(runner.run(stop).await?) });

        let commands = command_api::Dependencies {
            log: log.clone(),
            access: access.clone(),
            pool,
            clock: clock.clone(),
            settings: settings.commands,
            accounts: settings.accounts,
            open_runs: settings.runner.runs.open,
            open_targets: settings.runner.targets.open,
            home: common.home.clone(),
            readiness: readiness.clone(),
        };
        let commands = Box::pin(command_api::start(commands, shutdown.clone())).await?;
        let queries = query_api::start(query_api::Dependencies {
            access: access.clone(),
            log: log.clone(),
            pool: database::connect_read_only(database)?,
            clock,
            settings: settings.queries,
            readiness: readiness.clone(),
        });
        let router = commands.merge(queries).merge(sockets);
        Ok(Self {
            commands: Commands::new(log),
            access,
            readiness,
            router,
            tasks,
        })
    }

    /// Waits until all have ended, as they do at `shutdown`; a fault of one ends all.
    pub(super) async fn until_ended(mut self, shutdown: &CancellationToken) -> Result<(), Failure> {
        let mut ended = Ok(());
        while let Some(task) = self.tasks.join_next().await {
            let result = task.map_err(Failure::from).and_then(|result| result);
            if !shutdown.is_cancelled() || result.is_err() {
                shutdown.cancel();
                ended = ended.and(result);
            }
        }
        ended
    }
}
