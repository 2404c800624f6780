//! HTTP out: reads and exports from the read models.
//!
//! Every read goes through `Reading`, which proves that the caller is authorized, waits for the
//! position that the caller names, and supplies the organization that every query filters by.

mod account;
mod business;
mod circles;
mod documents;
pub mod exports;
pub mod feed;
mod keys;
mod locations;
mod pages;
mod paging;
mod progress;
mod reading;
mod records;
mod runs;
mod search;
mod settings;
mod sos;
mod state;
mod webhooks;
mod workflows;

use std::sync::Arc;

use access::{Access, by_session};
use axum::Router;
use axum::middleware::from_fn_with_state;
use event_log::EventLog;
use service::health::{self, Readiness};
use service::settings::HttpSettings;
use service::{Clock, ServeError};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use self::account::OwnExports;
use self::exports::Exports;
use self::feed::Feeds;
pub use self::pages::{MapSettings, field_of_column};
use self::progress::Progress;
pub use self::settings::QuerySettings;
use self::state::State;

/// Paths that only accept commands.
const COMMANDS: &[&str] = &[
    "/api/v1/circles",
    "/api/v1/circles/{id}/invites",
    "/api/v1/keys/{id}",
    "/api/v1/records/clients",
    "/api/v1/records/companies",
    "/api/v1/records/contacts",
    "/api/v1/records/deals",
    "/api/v1/records/leads",
    "/api/v1/records/orders",
    "/api/v1/runs/{run_id}/cancel",
    "/api/v1/runs/{run_id}/retry",
    "/api/v1/webhooks/{id}/replay",
    "/api/v1/webhooks/{id}/rotate-secret",
    "/api/v1/webhooks/{id}/test",
    "/api/v1/workflows//trigger",
    "/api/v1/workflows/{id}/trigger",
    "/auth/delete",
    "/auth/login",
    "/auth/logout",
    "/auth/otp/send",
    "/auth/otp/verify",
    "/auth/password",
    "/auth/register",
    "/circles/join",
    "/circles/{id}/invites",
    "/circles/{id}/members/me",
    "/circles/{id}/places/{place_id}",
    "/dashboard/invite/accept",
    "/dashboard/invite/look",
    "/dashboard/keys",
    "/dashboard/keys/{id}",
    "/dashboard/people/{id}",
    "/dashboard/people/invites/{id}",
    "/dashboard/sign-out",
    "/dashboard/sos/{id}/acknowledge",
    "/dashboard/sos/{id}/resolve",
    "/dashboard/system/operations",
    "/dashboard/system/operations/{id}",
    "/dashboard/workflows/{id}/run",
    "/location/pause",
    "/location/resume",
    "/location/update",
    "/sos/trigger",
    "/sos/{id}/acknowledge",
    "/sos/{id}/resolve",
];

/// Dependencies of the query API.
#[derive(Clone)]
pub struct Dependencies {
    /// Authorizes callers.
    pub access: Access,
    /// The log that positions refer to. Reads continue without it.
    pub log: EventLog,
    /// The read models, as a role that can only read.
    pub pool: PgPool,
    /// The time in file names, and the month at which trends end.
    pub clock: Arc<dyn Clock>,
    /// Settings of reads.
    pub settings: QuerySettings,
    /// Where the query API reports whether it works.
    pub readiness: Readiness,
}

/// Starts the query API, which follows the projections for as long as the router or its check is
/// kept. Returns the routes of all reads, without the layers of a whole process
/// ([`service::edge`]).
pub fn start(dependencies: Dependencies) -> Router {
    let Dependencies {
        access,
        log,
        pool,
        clock,
        settings,
        readiness,
    } = dependencies;
    let progress = Progress::follow(pool.clone(), settings.position_poll);
    let followed = progress.clone();
    readiness.add("query-api/read_models", move || {
        std::future::ready(followed.readiness())
    });
    access.announce(&readiness);
    router(State {
        access,
        log,
        progress,
        counts: search::Counts::default(),
        position_wait: settings.position_wait,
        exports: Exports::new(pool.clone(), clock.clone(), settings.exports),
        feeds: Feeds::new(settings.feeds),
        own_exports: OwnExports::default(),
        map: Arc::new(settings.map),
        clock,
        pool,
    })
}

fn router(state: State) -> Router {
    let on_pages = from_fn_with_state(state.access.clone(), by_session);
    Router::new()
        .merge(circles::router())
        .merge(documents::router())
        .merge(locations::router())
        .merge(pages::router())
        .merge(sos::router())
        .merge(of_organizations())
        .nest("/dashboard", of_organizations().layer(on_pages))
        .with_state(state)
}

/// Routes for an organization's programs, by key, and for its staff on its pages, by session.
fn of_organizations() -> Router<State> {
    Router::new()
        .merge(account::router())
        .merge(business::router())
        .merge(exports::router())
        .merge(feed::router())
        .merge(keys::router())
        .merge(records::router())
        .merge(runs::router())
        .merge(webhooks::router())
        .merge(workflows::router())
}

/// Serves the routes of a started query API at an address of their own until `shutdown`.
pub async fn serve(
    router: Router,
    readiness: Readiness,
    http: &HttpSettings,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let router = router
        .merge(service::answered_elsewhere(COMMANDS))
        .merge(health::router(readiness));
    let listener = service::listen(http.addr).await?;
    tracing::info!(address = %http.addr, "Answering reads");
    let (grace, edge) = (http.shutdown, http.edge.clone());
    service::serve(listener, service::edge(router), shutdown, grace, edge).await
}
