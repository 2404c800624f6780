//! `DELETE /api/v1/records/{kind}/{id}`: deletes a record.

use access::{Authorized, scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::record::{self, Kind};
use schemas::{OrgId, RecordId, StreamId};
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, NotFound, Origin, answer};

/// Deletes a record.
pub async fn delete(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    kind: Kind,
    id: &RecordId,
) -> Result<Done<()>, CommandError<NotFound>> {
    let stream = StreamId::new(org, kind.aggregate(), id.as_str());
    let deleted = commands.execute(origin, &stream, Past::Last, |past, _| {
        let last = past.last().map(|recorded| &recorded.event);
        let event = record::delete(kind, id.clone(), last).ok_or(NotFound("record"))?;
        Ok(Decision::new((), Some(event)))
    });
    deleted.await
}

pub(super) async fn delete_record(
    caller: Authorized<scope::WriteRecords>,
    State(app): State<App>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<RecordId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let done = delete(&app.commands, &origin, &caller.org, kind, &id).await?;
    Ok(answer::no_content(&done))
}
