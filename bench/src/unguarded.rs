//! A trigger without authentication and limits: what these cost is the difference.

use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use chrono::Utc;
use event_log::{EventLog, Expected, Keyring, LogSettings, Write};
use schemas::{AggregateType, Context, Event, EventId, NewEvent, OrgId, RunId, StreamId, workflow};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Serves until killed.
pub(crate) async fn serve(addr: SocketAddr) {
    let home = std::env::var("WAYPOST_HOME").expect("WAYPOST_HOME");
    let keyring = Keyring::load(FilePath::new(&home)).expect("a keyring");
    let settings = LogSettings::at(std::env::var("NATS_URL").expect("NATS_URL"));
    let log = EventLog::connect(&settings, keyring)
        .await
        .expect("the log");
    let router = Router::new()
        .route("/api/v1/workflows/{id}/trigger", post(trigger))
        .with_state(log);
    let listener = service::listen(addr).await.expect("a listener");
    let never = CancellationToken::new();
    service::serve(listener, service::edge(router), never, Duration::ZERO)
        .await
        .expect("serving");
}

async fn trigger(
    State(log): State<EventLog>,
    Path(workflow): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let run = Uuid::now_v7();
    let trigger_payload = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let event = Event::WorkflowTriggered(workflow::Triggered {
        run_id: RunId::from(run),
        workflow_id: workflow.into(),
        workflow_version: 1,
        trigger_payload,
    });
    let new = NewEvent {
        id: EventId(Uuid::now_v7()),
        time: Utc::now(),
        event,
        context: Context::default(),
        receipt: None,
    };
    let stream = StreamId::new(&OrgId::from("bench"), AggregateType::Run, run);
    let write = Write {
        stream,
        expected: Expected::Empty,
        events: vec![new],
    };
    match log.commit(write.into()).await {
        Ok(_) => Ok((StatusCode::ACCEPTED, Json(json!({ "runId": run })))),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
