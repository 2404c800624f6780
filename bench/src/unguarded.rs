//! A trigger without authentication and limits, and otherwise the same: the difference is what
//! these cost.

use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use chrono::Utc;
use command_api::workflows::Directory;
use domain::workflow::{TriggeredBy, payload};
use event_log::{EventLog, Expected, Keyring, LogSettings, Write};
use schemas::{AggregateType, Event, EventId, NewEvent, OrgId, RunId, StreamId, workflow};
use serde_json::json;
use service::settings::EdgeSettings;
use service::{HttpError, RequestContext};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const MAX_BYTES: usize = 256 * 1024;

/// State of a trigger without guards.
#[derive(Clone)]
struct Unguarded {
    log: EventLog,
    workflows: Directory,
    org: OrgId,
}

/// Serves until killed; every request is treated as this organization's.
pub(crate) async fn serve(addr: SocketAddr, org: &str) {
    let home = std::env::var("WAYPOST_HOME").expect("WAYPOST_HOME");
    let keyring = Keyring::load(FilePath::new(&home)).expect("a keyring");
    let replicas = std::env::var("WAYPOST_LOG_REPLICAS").expect("WAYPOST_LOG_REPLICAS");
    let settings = LogSettings {
        log_replicas: replicas.parse().expect("a number of copies"),
        ..LogSettings::at(std::env::var("NATS_URL").expect("NATS_URL"))
    };
    let log = EventLog::connect(&settings, keyring)
        .await
        .expect("the log");
    let never = CancellationToken::new();
    let workflows = Directory::start(log.clone(), never.clone()).await;
    let router = Router::new()
        .route("/api/v1/workflows/{id}/trigger", post(trigger))
        .with_state(Unguarded {
            log,
            workflows: workflows.expect("the workflows"),
            org: OrgId::from(org),
        });
    let listener = service::listen(addr).await.expect("a listener");
    let (router, edge) = (service::edge(router), EdgeSettings::default());
    service::serve(listener, router, never, Duration::ZERO, edge)
        .await
        .expect("serving");
}

async fn trigger(
    State(unguarded): State<Unguarded>,
    Path(workflow): Path<String>,
    context: RequestContext,
    request: Request,
) -> Result<Response, HttpError> {
    let Unguarded {
        log,
        workflows,
        org,
    } = unguarded;
    if !service::body::is_json(request.headers()) {
        return Err(HttpError::bad_request("not JSON"));
    }
    let body = service::body::read(request, MAX_BYTES).await?;
    let given =
        serde_json::from_slice(&body).map_err(|error| HttpError::bad_request(error.to_string()))?;
    let known = workflows.get(&org, &workflow);
    let version = known.and_then(|known| known.triggerable().ok());
    let version = version.ok_or_else(|| HttpError::not_found("no such workflow"))?;
    let (run, now) = (Uuid::now_v7(), Utc::now());
    let event = Event::WorkflowTriggered(workflow::Triggered {
        run_id: RunId::from(run),
        workflow_id: workflow.into(),
        workflow_version: version,
        trigger_payload: payload(given, TriggeredBy::ApiKey, now),
    });
    let new = NewEvent {
        id: EventId(Uuid::now_v7()),
        time: now,
        event,
        context: context.context(),
        receipt: None,
    };
    let stream = StreamId::new(&org, AggregateType::Run, run);
    let write = Write {
        stream,
        expected: Expected::Empty,
        events: vec![new],
    };
    let position = log
        .commit(write.into())
        .await
        .map_err(HttpError::internal)?;
    let position = [("waypost-position", position.to_string())];
    let started = Json(json!({ "runId": run }));
    Ok((StatusCode::ACCEPTED, position, started).into_response())
}
