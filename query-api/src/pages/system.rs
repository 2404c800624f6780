//! `GET /dashboard/system`: how far what is read is behind, and the organization's dead letters.

use axum::extract::State as AppState;
use axum::response::Response;
use chrono::{DateTime, Utc};
use minijinja::context;
use schemas::Log;
use serde::Serialize;

use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::state::State;

#[derive(Serialize)]
struct Standing {
    log: &'static str,
    behind: Option<u64>,
}

#[derive(Serialize)]
struct DeadLetter {
    projection: String,
    subject: String,
    event_type: Option<String>,
    reason: Option<String>,
    created_at: DateTime<Utc>,
}

/// Of dead letters, only the organization's own: what others wrote stands in theirs.
pub(super) async fn show_system(
    visit: Visit,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let models = visit.models(&[]).await?;
    let letters = sqlx::query_as!(
        DeadLetter,
        "SELECT projection, coalesce(aggregate || '/' || aggregate_id, subject) AS \"subject!\", event_type, reason, created_at FROM dead_letters WHERE org_id = $1 ORDER BY created_at DESC, projection, sequence LIMIT 100",
        visit.org().as_str(),
    );
    let letters = letters.fetch_all(models).await?;
    let mut standings = Vec::new();
    for (log, name) in [
        (Log::Events, "Events"),
        (Log::Locations, "Positions"),
        (Log::Deliveries, "Webhook deliveries"),
    ] {
        let end = state.log.end(log).await.ok();
        let behind = end.and_then(|end| state.progress.behind(end));
        standings.push(Standing { log: name, behind });
    }
    let page = visit.page("system.html", "System", "system").await?;
    Ok(page.show(context! { standings => shown(&standings), letters => shown(&letters) })?)
}
