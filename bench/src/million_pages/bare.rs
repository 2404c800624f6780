//! The first page served by a bare handler: one indexed query, no key, no total, no number.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::postgres::PgRow;
use sqlx::types::Json as Column;
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

use super::filled::{WEBHOOK, WORKFLOW};
use super::{LIMIT, List};
use crate::plain;

/// A row of a table as listed.
trait Listed: Serialize + Unpin + Send + for<'r> FromRow<'r, PgRow> {
    const TABLE: &str;
    const COLUMNS: &str;
    /// The columns of a row's id and its status.
    const ID: &str;
    const STATUS: &str;
    /// The column of the parent that the list belongs to, and its value.
    const PARENT: Option<(&str, &str)>;
}

#[derive(Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
struct OrderRow {
    id: String,
    order_number: String,
    status: String,
    amount: i64,
    plan: Option<String>,
    created_at: DateTime<Utc>,
    client_name: Option<String>,
    client_email: Option<String>,
    product_name: Option<String>,
}

#[derive(Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
struct RunRow {
    run_id: String,
    workflow_id: String,
    workflow_version: i64,
    state: String,
    trigger_payload: Column<Box<RawValue>>,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    error: Option<String>,
    steps: Column<Box<RawValue>>,
}

#[derive(Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
struct DeliveryRow {
    delivery_id: String,
    event_id: Uuid,
    event_type: String,
    status: String,
    next_attempt_at: Option<DateTime<Utc>>,
    attempts: Column<Box<RawValue>>,
    created_at: DateTime<Utc>,
}

impl Listed for OrderRow {
    const TABLE: &str = "orders";
    const COLUMNS: &str = "id, order_number, status, amount, plan, created_at, client_name,
        client_email, product_name";
    const ID: &str = "id";
    const STATUS: &str = "status";
    const PARENT: Option<(&str, &str)> = None;
}

impl Listed for RunRow {
    const TABLE: &str = "runs";
    const COLUMNS: &str = "run_id, workflow_id, workflow_version, state, trigger_payload,
        created_at, started_at, ended_at, error, steps";
    const ID: &str = "run_id";
    const STATUS: &str = "state";
    const PARENT: Option<(&str, &str)> = Some(("workflow_id", WORKFLOW));
}

impl Listed for DeliveryRow {
    const TABLE: &str = "deliveries";
    const COLUMNS: &str = "delivery_id, event_id, event_type, status, next_attempt_at, attempts,
        created_at";
    const ID: &str = "delivery_id";
    const STATUS: &str = "event_type";
    const PARENT: Option<(&str, &str)> = Some(("webhook_id", WEBHOOK));
}

#[derive(Serialize)]
struct Page<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct Asked {
    limit: i64,
    status: Option<String>,
}

/// The path of a list's first page.
pub(super) fn path(list: &List) -> String {
    let page = format!("/{}?limit={LIMIT}", list.of);
    match list.status {
        Some(status) => format!("{page}&status={status}"),
        None => page,
    }
}

/// Serves the first pages of an organization's lists until killed.
pub(crate) async fn serve(addr: SocketAddr, org: &str) {
    let router = Router::new()
        .route("/orders", get(list::<OrderRow>))
        .route("/runs", get(list::<RunRow>))
        .route("/deliveries", get(list::<DeliveryRow>))
        .with_state((plain::database().await, Arc::<str>::from(org)));
    let listener = service::listen(addr).await.expect("a listener");
    axum::serve(listener, router).await.expect("serving");
}

async fn list<T: Listed>(
    State((pool, org)): State<(PgPool, Arc<str>)>,
    Query(Asked { limit, status }): Query<Asked>,
) -> Result<Json<Page<T>>, StatusCode> {
    let of_parent = T::PARENT.map(|(column, parent)| (column, parent.to_owned()));
    let of_status = status.map(|status| (T::STATUS, status));
    let filters: Vec<_> = of_parent.into_iter().chain(of_status).collect();
    let mut found = sqlx::query_as::<_, T>(AssertSqlSafe(sql::<T>(&filters)))
        .bind(&*org)
        .bind(limit);
    for (_, value) in filters {
        found = found.bind(value);
    }
    match found.fetch_all(&pool).await {
        Ok(data) => Ok(Json(Page { data })),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn sql<T: Listed>(filters: &[(&str, String)]) -> String {
    let mut sql = format!("SELECT {} FROM {} WHERE org_id = $1", T::COLUMNS, T::TABLE);
    for (place, (column, _)) in (3..).zip(filters) {
        // Writing to a string cannot fail.
        let _ = write!(sql, " AND {column} = ${place}");
    }
    sql + " ORDER BY created_at DESC, " + T::ID + " LIMIT $2"
}
