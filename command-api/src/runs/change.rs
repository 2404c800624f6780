//! What all commands on a run have in common.

use axum::http::StatusCode;
use axum::response::Response;
use event_log::Position;
use schemas::{AggregateType, Event, OrgId, Recorded, RunId, StreamId};
use serde::Serialize;

use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, Origin, answer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangedRun {
    run_id: RunId,
}

/// Writes what is decided from a run's past, once for each receipt.
pub(super) async fn change<R>(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
    decide: impl Fn(&[Recorded]) -> Result<Option<Event>, R>,
) -> Result<Done<()>, CommandError<R>> {
    let stream = StreamId::new(org, AggregateType::Run, run_id.as_str());
    let holder = run_id.as_str();
    let changed = commands.execute_once(origin, &stream, Past::Whole, holder, |past, _| {
        Ok(Decision::new((), decide(past)?))
    });
    Ok(changed.await?.answered(drop))
}

/// 202: the runner does the rest.
pub(super) fn accepted(run_id: RunId, position: Position) -> Response {
    let answer = ChangedRun { run_id };
    answer::json(StatusCode::ACCEPTED, Done { answer, position })
}
