//! Common parts of all commands on a run.

use std::fmt::Display;

use axum::http::StatusCode;
use axum::response::Response;
use domain::run::Run;
use schemas::{AggregateType, Event, OrgId, RunId, StreamId};
use serde::Serialize;
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, Origin, Refusal, answer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangedRun {
    run_id: RunId,
}

/// Why a run was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged<E> {
    /// There is no such run.
    #[error("run not found")]
    NoRun,
    /// Its state does not allow it.
    #[error(transparent)]
    State(E),
}

impl<E: Display> Refusal for Unchanged<E> {
    fn into_http(self) -> HttpError {
        match self {
            Self::NoRun => HttpError::not_found("run not found"),
            Self::State(state) => HttpError::conflict(state.to_string()),
        }
    }
}

/// Writes a decision on a run, once for each receipt.
pub(super) async fn change<E>(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
    decide: impl Fn(&Run) -> Result<Option<Event>, E>,
) -> Result<Done<()>, CommandError<Unchanged<E>>> {
    let stream = StreamId::new(org, AggregateType::Run, run_id.as_str());
    let holder = run_id.as_str();
    let changed = commands.execute_once(origin, &stream, Past::Whole, holder, |past, _| {
        let run = Run::fold(past).map_err(|_| Unchanged::NoRun)?;
        let event = decide(&run).map_err(Unchanged::State)?;
        Ok(Decision::new((), event))
    });
    Ok(changed.await?.answered(drop))
}

/// 202: the runner does the rest.
pub(super) fn accepted(run_id: RunId, done: Done<()>) -> Response {
    answer::json(StatusCode::ACCEPTED, done.map(|()| ChangedRun { run_id }))
}
