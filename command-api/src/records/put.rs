//! `PUT /api/v1/records/{kind}/{id}`: creates a record or replaces it.

use access::{Authorized, scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::record::{self, Change, Draft, Kind};
use domain::{Precondition, Revision, Unmet};
use schemas::{OrgId, RecordId, StreamId};
use service::HttpError;

use super::NewRecord;
use crate::body::JsonBody;
use crate::commands::{Decision, Past};
use crate::precondition::{Expecting, tagged};
use crate::{App, CommandError, Commands, Done, Origin, Refusal, answer};

/// The path of a record.
struct RecordPath<'a> {
    org: &'a OrgId,
    kind: Kind,
    id: &'a RecordId,
}

/// Creates a record or replaces the existing one, if it meets the precondition. One that is already
/// the same is left as it is: a repeat finds what the first request wrote.
async fn put(
    commands: &Commands,
    origin: &Origin,
    RecordPath { org, kind, id }: RecordPath<'_>,
    draft: Draft,
    expected: &Precondition,
) -> Result<Done<(Change, Revision)>, CommandError<Unmet>> {
    let stream = StreamId::new(org, kind.aggregate(), id.as_str());
    let written = commands.execute(origin, &stream, Past::Last, |past, now| {
        let last = past.last();
        let event = last.map(|recorded| &recorded.event);
        let (change, event) = record::put(id.clone(), draft.clone(), event, now);
        let current = record::revision(kind, last);
        if event.is_some() {
            expected.check(current.as_ref())?;
        }
        let revision = current.filter(|_| event.is_none());
        let revision = revision.unwrap_or_else(|| Revision::of_record(now));
        Ok(Decision::new((change, revision), event))
    });
    written.await
}

pub(super) async fn put_record(
    caller: Authorized<scope::WriteRecords>,
    State(app): State<App>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<String>,
    Expecting(expected): Expecting,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let id = record::parse_id(&id).map_err(Refusal::into_http)?;
    let draft = record::parse(kind, body.value()?);
    let draft = draft.and_then(|draft| draft.addressed(id.clone()));
    let draft = draft.map_err(Refusal::into_http)?;
    let org = &caller.org;
    let place = RecordPath { org, kind, id: &id };
    let done = put(&app.commands, &origin, place, draft, &expected).await?;
    let (change, revision) = done.answer.clone();
    let status = match change {
        Change::Created => StatusCode::CREATED,
        Change::Updated | Change::Unchanged => StatusCode::OK,
    };
    let answer = answer::json(status, done.map(|_| NewRecord { id }));
    Ok(tagged(answer, &revision))
}
