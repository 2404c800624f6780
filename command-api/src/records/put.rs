//! `PUT /api/v1/records/{kind}/{id}`: makes a record or replaces it.

use std::convert::Infallible;

use access::{Authorized, scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::record::{self, Change, Draft, Kind};
use schemas::{OrgId, RecordId, StreamId};
use service::HttpError;

use super::NewRecord;
use super::create::read_draft;
use crate::body::JsonBody;
use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, Origin, Refusal, answer};

/// Makes a record or replaces the one that is there.
pub async fn put(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    kind: Kind,
    id: &RecordId,
    draft: Draft,
) -> Result<Done<Change>, CommandError<Infallible>> {
    let stream = StreamId::new(org, kind.aggregate(), id.as_str());
    let written = commands.execute(origin, &stream, Past::Last, |past, now| {
        let last = past.last().map(|recorded| &recorded.event);
        let (change, event) = record::put(id.clone(), draft.clone(), last, now);
        Ok(Decision::new(change, event))
    });
    written.await
}

pub(super) async fn put_record(
    caller: Authorized<scope::WriteRecords>,
    State(app): State<App>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<String>,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let id = record::parse_id(&id).map_err(Refusal::into_http)?;
    let draft = read_draft(kind, body.value()?);
    let draft = draft.and_then(|draft| draft.addressed(id.clone()));
    let draft = draft.map_err(Refusal::into_http)?;
    let done = put(&app.commands, &origin, &caller.org, kind, &id, draft).await?;
    let status = match done.answer {
        Change::Created => StatusCode::CREATED,
        Change::Updated | Change::Unchanged => StatusCode::OK,
    };
    Ok(answer::json(status, done.map(|_| NewRecord { id })))
}
