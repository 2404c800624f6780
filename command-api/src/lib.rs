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
use std::sync::Arc;
use std::time::Duration;

use access::{Access, by_session};
use axum::Router;
use axum::extract::FromRef;
use axum::middleware::from_fn_with_state;
use domain::target::Ranges;
use event_log::EventLog;
use service::settings::HttpSettings;
use service::{Clock, ServeError, health};
use tokio_util::sync::CancellationToken;

pub use bounds::{BoundSettings, TooMany};
pub use commands::{Commands, Done, Origin};
pub use dashboard::Operations;
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

/// Dependencies of the command routes.
#[derive(Clone)]
pub struct Dependencies {
    /// The log that events are appended to.
    pub log: EventLog,
    /// Permissions and rate limits.
    pub access: Access,
    /// The known workflows.
    pub workflows: workflows::Directory,
    /// The number of open runs of each organization.
    pub open_runs: workflows::OpenRuns,
    /// Where operators of the installation request operations.
    pub operations: Operations,
    /// Dependencies of accounts.
    pub accounts: accounts::Accounts,
    /// The known circles.
    pub circles: circles::Directory,
    /// The known webhooks.
    pub webhooks: webhooks::Directory,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Settings of commands.
    pub settings: CommandSettings,
    /// Private ranges that webhooks may point at.
    pub open_targets: Ranges,
}

/// State of all handlers; clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) commands: Commands,
    pub(crate) access: Access,
    pub(crate) accounts: accounts::Accounts,
    pub(crate) operations: Operations,
    pub(crate) workflows: workflows::Directory,
    pub(crate) open_runs: workflows::OpenRuns,
    pub(crate) circles: circles::Directory,
    pub(crate) webhooks: webhooks::Directory,
    pub(crate) bounds: BoundSettings,
    pub(crate) tracks: locations::Tracks,
    pub(crate) invites_last: Duration,
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

/// Returns all command routes, without the layers of a whole process ([`service::edge`]).
pub fn router(dependencies: Dependencies) -> Router {
    let commands = Commands::new(dependencies.log)
        .with_clock(dependencies.clock)
        .with_receipts_lasting(dependencies.settings.idempotency);
    let app = App(Arc::new(Inner {
        commands,
        access: dependencies.access,
        accounts: dependencies.accounts,
        operations: dependencies.operations,
        workflows: dependencies.workflows,
        open_runs: dependencies.open_runs,
        circles: dependencies.circles,
        webhooks: dependencies.webhooks,
        bounds: dependencies.settings.bounds,
        tracks: locations::Tracks::default(),
        invites_last: dependencies.settings.invite,
        sos_late: dependencies.settings.sos_late,
        open_targets: dependencies.open_targets,
        webhook_old_secret: dependencies.settings.webhook_old_secret,
        keys_per_organization: dependencies.settings.keys_per_organization,
        people: dependencies.settings.people,
        uploads: records::Uploads::new(dependencies.settings.uploads),
        reading: workflows::Reading::default(),
    }));
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

/// Serves commands at an address of their own until `shutdown`.
pub async fn run(
    dependencies: Dependencies,
    http: &HttpSettings,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let readiness = health::Readiness::default();
    let log = dependencies.log.clone();
    readiness.add("event log", move || {
        let connected = log.is_connected();
        async move {
            connected
                .then_some(())
                .ok_or_else(|| "not connected".to_owned())
        }
    });
    let access = dependencies.access.clone();
    readiness.add("keys", move || {
        let ready = access.readiness();
        async move { ready }
    });
    let router = router(dependencies)
        .merge(service::answered_elsewhere(READS))
        .merge(health::router(readiness));
    let listener = service::listen(http.addr).await?;
    tracing::info!(address = %http.addr, "Accepting commands");
    let (grace, edge) = (http.shutdown, http.edge.clone());
    service::serve(listener, service::edge(router), shutdown, grace, edge).await
}
