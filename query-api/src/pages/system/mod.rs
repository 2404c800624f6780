//! `GET /dashboard/system`: the lag of the read models, and the organization's dead letters. For
//! operators of the installation, all projections, the dead letters of all organizations and the
//! requested operations.

mod operations;
mod operators;

use access::Operator;
use axum::extract::State as AppState;
use axum::response::Response;
use chrono::{DateTime, Utc};
use minijinja::{Value, context};
use schemas::{Log, OrgId};
use serde::Serialize;
use sqlx::PgPool;

use super::frame::{piece, shown};
use super::visit::{Instead, Visit};
use crate::state::State;

#[derive(Serialize)]
struct Lag {
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

pub(super) async fn show_system(
    visit: Visit,
    operator: Option<Operator>,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let models = visit.models(&[]).await?;
    let (letters, script) = match operator {
        Some(operator) => {
            let all = operators::look(&operator, &state, models).await?;
            (piece("system_operators.html", all)?, Some("system.js"))
        }
        None => (
            piece("system_letters.html", own(visit.org(), models).await?)?,
            None,
        ),
    };
    let lags = lags(&state).await;
    let mut page = visit.page("system.html", "System", "system").await?;
    page.scripts.extend(script);
    Ok(page.show(context! { lags => shown(&lags), letters })?)
}

async fn lags(state: &State) -> Vec<Lag> {
    let mut lags = Vec::new();
    for (log, name) in [
        (Log::Events, "Events"),
        (Log::Locations, "Positions"),
        (Log::Deliveries, "Webhook deliveries"),
    ] {
        let behind = state.behind(log).await;
        lags.push(Lag { log: name, behind });
    }
    lags
}

/// Returns the organization's own dead letters. Those of others are shown to them.
async fn own(org: &OrgId, models: &PgPool) -> Result<Value, sqlx::Error> {
    let letters = sqlx::query_as!(
        DeadLetter,
        "SELECT projection, coalesce(aggregate || '/' || aggregate_id, subject) AS \"subject!\", event_type, reason, created_at FROM dead_letters WHERE org_id = $1 ORDER BY created_at DESC, projection, sequence LIMIT 100",
        org.as_str(),
    );
    let letters = letters.fetch_all(models).await?;
    Ok(context! { letters => shown(&letters) })
}
