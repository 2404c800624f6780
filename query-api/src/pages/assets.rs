//! Styles and scripts.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use service::HttpError;

use crate::reading::ResourceId;

const ASSETS: &[(&str, &str, &str)] = &[
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("assets/style.css"),
    ),
    (
        "dashboard.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/dashboard.js"),
    ),
    (
        "docs.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/docs.js"),
    ),
    (
        "csv.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/csv.js"),
    ),
    (
        "import.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/import.js"),
    ),
    (
        "records.css",
        "text/css; charset=utf-8",
        include_str!("assets/records.css"),
    ),
    (
        "records.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/records.js"),
    ),
    (
        "charts.css",
        "text/css; charset=utf-8",
        include_str!("assets/charts.css"),
    ),
    (
        "flow.css",
        "text/css; charset=utf-8",
        include_str!("assets/flow.css"),
    ),
    (
        "runs.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/runs.js"),
    ),
    (
        "system.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/system.js"),
    ),
    (
        "watch.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/watch.js"),
    ),
    (
        "workflows.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/workflows.js"),
    ),
    (
        "events.css",
        "text/css; charset=utf-8",
        include_str!("assets/events.css"),
    ),
    (
        "events.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/events.js"),
    ),
    (
        "webhooks.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/webhooks.js"),
    ),
    (
        "app.css",
        "text/css; charset=utf-8",
        include_str!("app/app.css"),
    ),
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_str!("app/app.js"),
    ),
    (
        "map.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/map.js"),
    ),
    (
        "tiles.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/tiles.js"),
    ),
    (
        "live.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/live.js"),
    ),
    (
        "live_map.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/live_map.js"),
    ),
    (
        "world.json",
        "application/json",
        include_str!("assets/world.json"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

pub(super) async fn get_asset(ResourceId(name): ResourceId) -> Result<Response, HttpError> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    let (_, kind, text) = found.ok_or_else(|| HttpError::not_found("file not found"))?;
    let headers = [
        (CONTENT_TYPE, *kind),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, *text).into_response())
}
