//! Pages for persons: `/docs` for all, and `/dashboard` for an organization's staff.
//!
//! They are rendered here and need nothing from elsewhere: styles and scripts are in `assets/` and
//! part of the program. A person's actions on them go to `command-api`.

mod address;
mod amounts;
mod api_manager;
mod app;
mod assets;
mod chart;
mod docs;
mod events;
mod frame;
mod graph;
mod home;
mod map;
mod people;
mod records;
mod runs;
mod sign_in;
mod system;
mod visit;
mod webhooks;
mod workflows;

pub use self::map::MapSettings;
pub use self::records::field_of_column;
use axum::Router;
use axum::routing::get;

use crate::state::State;

/// Maximum number of runs, or deliveries, that a page counts. It says if there are more.
const COUNTED: i64 = 100_000;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .merge(docs::router())
        .merge(records::router())
        .route("/app", get(app::show_app))
        .route("/dashboard/map", get(map::show_map))
        .route("/dashboard/map/now", get(map::read_now))
        .route("/dashboard", get(home::show_home))
        .route("/dashboard/charts/{name}", get(home::get_chart))
        .route("/dashboard/sign-in", get(sign_in::show_sign_in))
        .route("/dashboard/people", get(people::list_people))
        .route("/dashboard/invite", get(people::show_invite))
        .route("/dashboard/assets/{name}", get(assets::get_asset))
        .route("/dashboard/workflows", get(workflows::list_workflows))
        .route("/dashboard/workflows/{id}", get(workflows::show_workflow))
        .route("/dashboard/runs", get(runs::list_runs))
        .route("/dashboard/runs/matching", get(runs::list_matching))
        .route("/dashboard/runs/{run_id}", get(runs::show_run))
        .route("/dashboard/events", get(events::list_events))
        .route("/dashboard/events/{position}", get(events::show_event))
        .route("/dashboard/system", get(system::show_system))
        .route("/dashboard/webhooks", get(webhooks::list_webhooks))
        .route("/dashboard/webhooks/{id}", get(webhooks::show_webhook))
        .route(
            "/dashboard/settings/api-manager",
            get(api_manager::show_keys),
        )
}
