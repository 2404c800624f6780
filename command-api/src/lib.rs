//! HTTP in: commands become events.
//!
//! Each command loads the events it needs of its aggregate from the log, decides in a pure function
//! of `domain`, and appends provided that the past it saw is unchanged. Commands that the
//! operator's command line also runs are public functions next to their handlers.

mod answer;
mod body;
mod bounds;
mod commands;
mod error;
mod follow;
mod precondition;
mod random;
mod repeatable;
mod settings;
#[cfg(test)]
mod test_log;

pub mod accounts;
pub mod circles;
mod dashboard;
pub mod keys;
mod locations;
pub mod organizations;
pub mod records;
pub mod runs;
pub mod secrets;
mod sos;
pub mod webhooks;
pub mod workflows;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, by_session};
use axum::Router;
use axum::extract::FromRef;
use axum::middleware::from_fn_with_state;
use domain::target::Ranges;
use event_log::{EventLog, ReadError};
use service::health::{self, Readiness};
use service::settings::{HttpSettings, OpenRunSettings};
use service::{Clock, ServeError};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use accounts::{AccountSettings, Accounts, SendError, Unfinished};
use dashboard::Operations;

pub use bounds::{BoundSettings, TooMany};
pub use commands::{Commands, Done, Origin};
pub use error::{CommandError, LogError, NotFound, Refusal};
pub use random::Random;
pub use settings::{CommandSettings, PeopleSettings};

/// Read-only paths.
const READS: &[&str] = &[
    "/api/v1/analytics",
    "/api/v1/clients",
    "/api/v1/events",
    "/api/v1/leads",
    "/api/v1/locations",
    "/api/v1/orders",
    "/api/v1/runs/{run_id}",
    "/api/v1/webhooks/{id}/deliveries",
    "/api/v1/workflows",
    "/api/v1/workflows/{id}/runs",
    "/app",
    "/asyncapi.json",
    "/auth/export",
    "/dashboard",
    "/dashboard/assets/{name}",
    "/dashboard/charts/{name}",
    "/dashboard/clients",
    "/dashboard/clients/{id}",
    "/dashboard/companies",
    "/dashboard/companies/{id}",
    "/dashboard/contacts",
    "/dashboard/contacts/{id}",
    "/dashboard/deals",
    "/dashboard/deals/{id}",
    "/dashboard/events",
    "/dashboard/events/{position}",
    "/dashboard/invite",
    "/dashboard/leads",
    "/dashboard/leads/{id}",
    "/dashboard/map",
    "/dashboard/map/now",
    "/dashboard/new/{kind}",
    "/dashboard/orders",
    "/dashboard/orders/{id}",
    "/dashboard/runs",
    "/dashboard/runs/matching",
    "/dashboard/runs/{run_id}",
    "/dashboard/settings/api-manager",
    "/dashboard/system",
    "/dashboard/webhooks",
    "/dashboard/webhooks/{id}",
    "/dashboard/workflows",
    "/dashboard/workflows/{id}",
    "/docs",
    "/docs/search",
    "/docs/pictures/{name}",
    "/docs/tutorial",
    "/docs/{folder}/{name}",
    "/docs/reference/api/{part}",
    "/location/history",
    "/location/latest",
    "/location/trails",
    "/openapi.json",
    "/sos",
];

/// Dependencies of the command API.
#[derive(Clone)]
pub struct Dependencies {
    /// The log that events are appended to.
    pub log: EventLog,
    /// Permissions and rate limits.
    pub access: Access,
    /// The database of one-time codes, throttles and operators' requests, where open runs are
    /// counted.
    pub pool: PgPool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Settings of commands.
    pub settings: CommandSettings,
    /// Settings of accounts.
    pub accounts: AccountSettings,
    /// How many runs may be open.
    pub open_runs: OpenRunSettings,
    /// Private ranges that webhooks may point at.
    pub open_targets: Ranges,
    /// Folder of the outbox.
    pub home: PathBuf,
    /// Where the command API reports whether it works.
    pub readiness: Readiness,
}

/// Why the command API could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log does not answer.
    #[error("cannot read the workflows, circles and webhooks from the log: {0}")]
    Read(#[from] ReadError),
    /// There is nowhere to keep what is unfinished.
    #[error("cannot carry on what was not finished: {0}")]
    Unfinished(#[from] event_log::Error),
    /// Messages cannot be sent as the settings say.
    #[error(transparent)]
    Sender(#[from] SendError),
}

/// State of all handlers; clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) commands: Commands,
    pub(crate) access: Access,
    pub(crate) accounts: Accounts,
    pub(crate) operations: Operations,
    pub(crate) workflows: workflows::Directory,
    pub(crate) open_runs: workflows::OpenRuns,
    pub(crate) circles: circles::Directory,
    pub(crate) webhooks: webhooks::Directory,
    pub(crate) replay_turns: webhooks::ReplayTurns,
    pub(crate) bounds: BoundSettings,
    pub(crate) tracks: locations::Tracks,
    pub(crate) invites_last: Duration,
    pub(crate) fix_ahead: Duration,
    pub(crate) sos_late: Duration,
    pub(crate) open_targets: Ranges,
    pub(crate) webhook_old_secret: Duration,
    pub(crate) keys_per_organization: usize,
    pub(crate) people: PeopleSettings,
    pub(crate) uploads: records::Uploads,
    pub(crate) reading: workflows::Reading,
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl FromRef<App> for Access {
    fn from_ref(app: &App) -> Self {
        app.access.clone()
    }
}

/// Starts the command API, which follows the log until `shutdown`. Returns all command routes,
/// without the layers of a whole process ([`service::edge`]).
pub async fn start(
    dependencies: Dependencies,
    shutdown: CancellationToken,
) -> Result<Router, StartError> {
    let Dependencies {
        log,
        access,
        pool,
        clock,
        settings,
        accounts,
        open_runs,
        open_targets,
        home,
        readiness,
    } = dependencies;
    log.durability().report();
    let workflows = workflows::Directory::start(log.clone(), shutdown.clone()).await?;
    let circles = circles::Directory::start(log.clone(), shutdown.clone()).await?;
    let webhooks = webhooks::Directory::start(log.clone(), shutdown.clone()).await?;
    Unfinished::start(log.clone(), shutdown).await?;
    let accounts = Accounts::new(accounts, pool.clone(), log.keyring(), &home)?;
    let connection = log.clone();
    readiness.add_log(move || connection.is_connected());
    access.announce(&readiness);
    let commands = Commands::new(log)
        .with_clock(clock)
        .with_receipts_lasting(settings.idempotency);
    Ok(router(App(Arc::new(Inner {
        commands,
        access,
        accounts,
        operations: Operations::new(pool.clone()),
        workflows,
        open_runs: workflows::OpenRuns::at_most(open_runs.per_organization, pool),
        circles,
        webhooks,
        replay_turns: webhooks::ReplayTurns::default(),
        bounds: settings.bounds,
        tracks: locations::Tracks::default(),
        invites_last: settings.invite,
        fix_ahead: settings.fix_ahead,
        sos_late: settings.sos_late,
        open_targets,
        webhook_old_secret: settings.webhook_old_secret,
        keys_per_organization: settings.keys_per_organization,
        people: settings.people,
        uploads: records::Uploads::new(settings.uploads),
        reading: workflows::Reading::default(),
    }))))
}

fn router(app: App) -> Router {
    let on_pages = from_fn_with_state(app.access.clone(), by_session);
    Router::new()
        .merge(accounts::router())
        .merge(dashboard::router())
        .merge(locations::router())
        .merge(sos::router())
        .merge(circles::router())
        .merge(keys::router())
        .merge(of_organizations())
        .nest("/dashboard", of_organizations().layer(on_pages))
        .with_state(app)
}

/// Routes for an organization's programs with a key, and for its staff on its pages with a session.
fn of_organizations() -> Router<App> {
    Router::new()
        .merge(circles::of_organizations())
        .merge(records::router())
        .merge(runs::router())
        .merge(webhooks::router())
        .merge(workflows::router())
}

/// Serves the routes of a started command API at an address of their own until `shutdown`.
pub async fn serve(
    router: Router,
    readiness: Readiness,
    http: &HttpSettings,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let router = router
        .merge(service::answered_elsewhere(READS))
        .merge(health::router(readiness));
    let listener = service::listen(http.addr).await?;
    tracing::info!(address = %http.addr, "Accepting commands");
    let (grace, edge) = (http.shutdown, http.edge.clone());
    service::serve(listener, service::edge(router), shutdown, grace, edge).await
}
