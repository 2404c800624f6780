//! The alternative to Waypost: one axum handler that checks the key, counts the request and inserts
//! the run, in Postgres.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use axum::{Json, Router};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use service::settings::EdgeSettings;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use tokio_util::sync::CancellationToken;

const TABLES: &str = "
    CREATE TABLE plain_keys (
        key_sha256 bytea PRIMARY KEY, org_id text NOT NULL, rate_limit bigint NOT NULL,
        window_start timestamptz NOT NULL DEFAULT now(), used bigint NOT NULL DEFAULT 0);
    CREATE TABLE plain_workflows (org_id text, id text, status text, PRIMARY KEY (org_id, id));
    CREATE TABLE plain_runs (
        id uuid PRIMARY KEY, org_id text NOT NULL, workflow_id text NOT NULL,
        payload jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON plain_runs (org_id, workflow_id, created_at DESC);";

/// Creates the tables with some keys and a workflow.
pub(crate) async fn prepare(database_url: &str, keys: &[String], workflow: &str) {
    let pool = PgPool::connect(database_url).await.expect("Postgres");
    pool.execute(TABLES).await.expect("tables");
    let hashes: Vec<Vec<u8>> = keys.iter().map(|key| hash(key)).collect();
    let insert = "INSERT INTO plain_keys (key_sha256, org_id, rate_limit)
                  SELECT key, 'bench', 1000000000 FROM unnest($1::bytea[]) AS key";
    sqlx::query(insert)
        .bind(hashes)
        .execute(&pool)
        .await
        .expect("keys");
    let insert = "INSERT INTO plain_workflows VALUES ('bench', $1, 'ACTIVE')";
    sqlx::query(insert)
        .bind(workflow)
        .execute(&pool)
        .await
        .expect("a workflow");
}

/// The database that a bare handler reads.
pub(crate) async fn database() -> PgPool {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL");
    let pool = PgPoolOptions::new().max_connections(16).connect(&url).await;
    pool.expect("Postgres")
}

/// Serves until killed.
pub(crate) async fn serve(addr: SocketAddr) {
    let router = Router::new()
        .route("/api/v1/workflows/{id}/trigger", post(trigger))
        .with_state(database().await);
    let listener = service::listen(addr).await.expect("a listener");
    let (never, edge) = (CancellationToken::new(), EdgeSettings::default());
    service::serve(listener, router, never, Duration::ZERO, edge)
        .await
        .expect("serving");
}

async fn trigger(
    State(pool): State<PgPool>,
    Path(workflow): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let key = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let key = key
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or(StatusCode::UNAUTHORIZED)?;
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let count = "UPDATE plain_keys SET
            used = CASE WHEN window_start < now() - interval '1 hour' THEN 1 ELSE used + 1 END,
            window_start = CASE WHEN window_start < now() - interval '1 hour' THEN now()
                                ELSE window_start END
        WHERE key_sha256 = $1 AND (used < rate_limit OR window_start < now() - interval '1 hour')
        RETURNING org_id";
    let org: Option<String> = sqlx::query_scalar(count)
        .bind(hash(key))
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
    let org = org.ok_or(StatusCode::TOO_MANY_REQUESTS)?;
    let status = "SELECT status FROM plain_workflows WHERE org_id = $1 AND id = $2";
    let status: Option<String> = sqlx::query_scalar(status)
        .bind(&org)
        .bind(&workflow)
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
    if status.ok_or(StatusCode::NOT_FOUND)? != "ACTIVE" {
        return Err(StatusCode::CONFLICT);
    }
    let payload: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let run = uuid::Uuid::now_v7();
    let insert =
        "INSERT INTO plain_runs (id, org_id, workflow_id, payload) VALUES ($1, $2, $3, $4)";
    let inserted = sqlx::query(insert)
        .bind(run)
        .bind(&org)
        .bind(&workflow)
        .bind(payload);
    inserted.execute(&pool).await.map_err(failed)?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "runId": run }))))
}

fn hash(key: &str) -> Vec<u8> {
    digest(&SHA256, key.as_bytes()).as_ref().to_vec()
}
