//! `POST /api/v1/workflows/{id}/trigger`: starts a run. The hot path.

use std::time::Duration;

use access::{Authorized, scope};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::workflow::{MAX_HOPS, NotTriggerable, Summary, TriggeredBy, payload};
use event_log::{AppendError, Commit, Expected, Position, PositionError};
use schemas::nesting::{self, MAX_LEVELS};
use schemas::workflow::Triggered;
use schemas::{AggregateType, Event, OrgId, Receipt, RunId, StreamId, WorkflowId};
use serde::Serialize;
use serde_json::{Map, Value};
use service::HttpError;
use tokio::time::sleep;

use super::open::TooManyOpen;
use crate::error::LogError;
use crate::repeatable::Repeatable;
use crate::{App, Commands, Done, Origin, answer};

const MAX_BYTES: usize = 256 * 1024;
const MIN_POSITION: &str = "waypost-min-position";
/// How often, and after which pause, the faster request's run is looked up again.
const UNCONFIRMED: u32 = 5;
const CONFIRMATION: Duration = Duration::from_millis(100);

/// A started run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    run_id: RunId,
}

/// Why no run was started. This API uses only the statuses 400, 404, 409, 429 and 500.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Malformed(String),
    #[error("workflow not found")]
    NoWorkflow,
    #[error(transparent)]
    NotTriggerable(#[from] NotTriggerable),
    #[error("loop stopped: this call follows from {MAX_HOPS} runs that triggered one another")]
    TooManyHops,
    #[error(transparent)]
    TooManyOpen(#[from] TooManyOpen),
    #[error(
        "the run could not be started, and nothing was confirmed; retry with the same \
         Idempotency-Key"
    )]
    Log(#[from] LogError),
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Malformed(_) | Refusal::Log(LogError::TooLarge) => Self::bad_request(message),
            Refusal::NoWorkflow => Self::not_found(message),
            Refusal::NotTriggerable(_) | Refusal::TooManyHops | Refusal::TooManyOpen(_) => {
                Self::conflict(message)
            }
            Refusal::Log(error @ LogError::HeldBack) => error.into(),
            Refusal::Log(error) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, message).with_cause(error)
            }
        }
    }
}

fn malformed(reason: impl Into<String>) -> Refusal {
    Refusal::Malformed(reason.into())
}

/// A request to start a run.
struct Trigger {
    org: OrgId,
    by: TriggeredBy,
    origin: Origin,
    workflow_id: String,
    given: Map<String, Value>,
    min_position: Option<Position>,
}

pub(super) async fn trigger_workflow(
    caller: Authorized<scope::TriggerWorkflow>,
    State(app): State<App>,
    Path(workflow_id): Path<String>,
    repeatable: Repeatable,
    request: Request,
) -> Result<Response, HttpError> {
    let min_position = min_position(&app, request.headers())?;
    let (given, body) = read_body(request).await?;
    let trigger = Trigger {
        org: caller.org.clone(),
        by: TriggeredBy::ApiKey,
        origin: repeatable.by_key(&caller, body.trim_ascii()),
        workflow_id,
        given,
        min_position,
    };
    let done = start_run(&app, trigger).await?;
    Ok(answer::json(StatusCode::ACCEPTED, done))
}

/// Starts a run by hand for a person; the body is the same as a program's.
pub(crate) async fn run_now(
    app: &App,
    org: &OrgId,
    workflow_id: String,
    origin: Origin,
    request: Request,
) -> Result<Done<Started>, HttpError> {
    let (given, _) = read_body(request).await?;
    let trigger = Trigger {
        org: org.clone(),
        by: TriggeredBy::User,
        origin,
        workflow_id,
        given,
        min_position: None,
    };
    Ok(start_run(app, trigger).await?)
}

/// A path without a workflow's id, authorised like any other.
pub(super) async fn trigger_nothing(
    _caller: Authorized<scope::TriggerWorkflow>,
) -> Result<Response, HttpError> {
    Err(malformed("workflowId: is required in the path").into())
}

fn min_position(app: &App, headers: &HeaderMap) -> Result<Option<Position>, Refusal> {
    let Some(value) = headers.get(MIN_POSITION) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| PositionError::Malformed);
    let position = text.and_then(|text| app.commands.log().parse_position(text));
    let position = position.map_err(|error| malformed(format!("Waypost-Min-Position: {error}")))?;
    Ok(Some(position))
}

/// Returns the payload that a run starts with, and the body that contains it.
async fn read_body(request: Request) -> Result<(Map<String, Value>, Bytes), HttpError> {
    let json = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|_| service::body::is_json(request.headers()));
    let body = service::body::read(request, MAX_BYTES).await;
    let body = body.map_err(|error| {
        let status = if error.status.is_server_error() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::BAD_REQUEST
        };
        error.with_status(status)
    })?;
    Ok((read_payload(&body, json)?, body))
}

/// Parses a JSON object or no body. White space alone counts as no body.
fn read_payload(body: &Bytes, json: bool) -> Result<Map<String, Value>, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    if !json {
        return Err(malformed(
            "Content-Type: must be application/json for a request with a body",
        ));
    }
    if nesting::is_deeper(body, MAX_LEVELS) {
        return Err(malformed(format!(
            "the body must not be nested more than {MAX_LEVELS} levels deep"
        )));
    }
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            malformed("the body must be a JSON object")
        } else {
            malformed(format!("the body is not valid JSON: {error}"))
        }
    })
}

async fn start_run(app: &App, trigger: Trigger) -> Result<Done<Started>, Refusal> {
    match triggerable(app, &trigger).await {
        Ok(version) => append(app, trigger, version).await,
        // A repeat gets the first answer, whatever became of the workflow.
        Err(refusal) => match &trigger.origin.receipt {
            Some(receipt) => repeated(app, &trigger.org, receipt).await?.ok_or(refusal),
            None => Err(refusal),
        },
    }
}

/// The version that the run follows. A refusal is never based on stale state: the log decides.
async fn triggerable(app: &App, trigger: &Trigger) -> Result<u32, Refusal> {
    let (org, id) = (&trigger.org, trigger.workflow_id.as_str());
    let judge = |known: Option<Summary>| -> Result<u32, Refusal> {
        Ok(known.ok_or(Refusal::NoWorkflow)?.triggerable()?)
    };
    let fresh = trigger
        .min_position
        .is_none_or(|position| app.workflows.has_reached(position));
    let version = match judge(app.workflows.get(org, id)) {
        Ok(version) if fresh => version,
        _ => judge(app.workflows.ask_log(org, id).await)?,
    };
    within_hops(&trigger.origin)?;
    app.open_runs.admit(org)?;
    Ok(version)
}

/// A call by a run, or one that follows from a webhook about it, counts like an event.
fn within_hops(origin: &Origin) -> Result<(), Refusal> {
    if origin.context.hops > MAX_HOPS {
        metrics::counter!("waypost_triggers_refused_total", "reason" => "hops").increment(1);
        return Err(Refusal::TooManyHops);
    }
    Ok(())
}

async fn append(app: &App, trigger: Trigger, version: u32) -> Result<Done<Started>, Refusal> {
    let now = app.commands.now();
    let run = NewRun {
        org: trigger.org.clone(),
        workflow_id: WorkflowId::new(trigger.workflow_id),
        version,
        payload: payload(trigger.given, trigger.by, now),
        origin: trigger.origin,
        now,
    };
    if let Some(receipt) = run.origin.receipt.clone() {
        return append_once(app, &run, &receipt).await;
    }
    let run_id = RunId::from(app.commands.random.id_at(now));
    let commit = run.begin(&app.commands, run_id.clone());
    let position = app.commands.log().commit(commit).await;
    Ok(started(run_id, position.map_err(LogError::from)?))
}

/// A run that is about to start.
#[derive(Clone)]
struct NewRun {
    org: OrgId,
    workflow_id: WorkflowId,
    version: u32,
    payload: Map<String, Value>,
    origin: Origin,
    now: DateTime<Utc>,
}

impl NewRun {
    fn begin(self, commands: &Commands, run_id: RunId) -> Commit {
        let stream = StreamId::new(&self.org, AggregateType::Run, run_id.as_str());
        let begun = vec![Event::WorkflowTriggered(Triggered {
            run_id,
            workflow_id: self.workflow_id,
            workflow_version: self.version,
            trigger_payload: self.payload,
        })];
        let write = commands.write(&self.origin, self.now, stream, Expected::Empty, begun);
        Commit::from(write)
    }
}

fn started(run_id: RunId, position: Position) -> Done<Started> {
    let answer = Started { run_id };
    Done { answer, position }
}

/// The receipt names the run: a repeat, even at another process while the first is still in
/// progress, finds the first one's event and answers from it.
async fn append_once(app: &App, run: &NewRun, receipt: &Receipt) -> Result<Done<Started>, Refusal> {
    let (mut generation, mut unconfirmed) = (0, 0);
    while unconfirmed < UNCONFIRMED {
        let run_id = derived_run_id(app, receipt, generation);
        let commit = run.clone().begin(&app.commands, run_id.clone());
        match app.commands.log().commit(commit).await {
            Ok(position) => return Ok(started(run_id, position)),
            Err(AppendError::Conflict) => {}
            Err(error) => return Err(LogError::from(error).into()),
        }
        match earlier(app, &run.org, &run_id, receipt).await? {
            Earlier::Fresh(position) => return Ok(started(run_id, position)),
            Earlier::Stale => generation += 1,
            // The faster request's event is not visible, which is so for a moment when the log's
            // leader has just changed. Another run must not start.
            Earlier::None => {
                unconfirmed += 1;
                sleep(CONFIRMATION).await;
            }
        }
    }
    Err(LogError::Busy.into())
}

/// The first answer to a request with this receipt.
async fn repeated(
    app: &App,
    org: &OrgId,
    receipt: &Receipt,
) -> Result<Option<Done<Started>>, Refusal> {
    for generation in 0..=u64::MAX {
        let run_id = derived_run_id(app, receipt, generation);
        match earlier(app, org, &run_id, receipt).await? {
            Earlier::None => break,
            Earlier::Stale => {}
            Earlier::Fresh(position) => return Ok(Some(started(run_id, position))),
        }
    }
    Ok(None)
}

/// An `Idempotency-Key` may be used again once its receipt is too old; each use is a generation.
fn derived_run_id(app: &App, receipt: &Receipt, generation: u64) -> RunId {
    let parts = &[receipt.key.as_bytes(), &generation.to_be_bytes()[..]];
    RunId::from(app.commands.log().keyring().derived_uuid("run", parts))
}

/// The known state of a run that a receipt names.
enum Earlier {
    None,
    Stale,
    Fresh(Position),
}

async fn earlier(
    app: &App,
    org: &OrgId,
    run_id: &RunId,
    receipt: &Receipt,
) -> Result<Earlier, Refusal> {
    let log = app.commands.log();
    let stream = StreamId::new(org, AggregateType::Run, run_id.as_str());
    let events = log.load(&stream).await.map_err(LogError::from)?;
    let (Some(first), Some(last)) = (events.first(), events.last()) else {
        return Ok(Earlier::None);
    };
    // The receipt of a run that was forgotten is erased with it, or about to be: whatever the
    // request is, the run began, and another must not.
    let is_forgotten = matches!(last.event, Event::RunForgotten(_));
    let first = if is_forgotten { last } else { first };
    if !app.commands.is_fresh(first.time) {
        return Ok(Earlier::Stale);
    }
    if !is_forgotten && first.receipt.as_ref() != Some(receipt) {
        return Err(malformed(
            "this Idempotency-Key was already used with another request; use a new key",
        ));
    }
    Ok(Earlier::Fresh(
        log.position(schemas::Log::Events, first.sequence),
    ))
}
