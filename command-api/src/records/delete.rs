//! `DELETE /api/v1/records/{kind}/{id}`: deletes a record.

use access::{Authorized, scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::record::{self, Kind};
use domain::{Precondition, Unmet};
use schemas::{OrgId, RecordId, StreamId};
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::precondition::Expecting;
use crate::{App, CommandError, Commands, Done, NotFound, Origin, Refusal, answer};

/// Why a record is not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDeleted {
    /// There is no such record.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It does not meet the precondition.
    #[error(transparent)]
    Unmet(#[from] Unmet),
}

impl Refusal for NotDeleted {
    fn into_http(self) -> HttpError {
        match self {
            Self::NotFound(refusal) => refusal.into_http(),
            Self::Unmet(refusal) => refusal.into_http(),
        }
    }
}

/// Deletes a record if it meets the precondition.
pub async fn delete(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    kind: Kind,
    id: &RecordId,
    expected: &Precondition,
) -> Result<Done<()>, CommandError<NotDeleted>> {
    let stream = StreamId::new(org, kind.aggregate(), id.as_str());
    let deleted = commands.execute(origin, &stream, Past::Last, |past, _| {
        let last = past.last();
        let event = last.map(|recorded| &recorded.event);
        let event = record::delete(kind, id.clone(), event).ok_or(NotFound("record"))?;
        expected.check(record::revision(kind, last).as_ref())?;
        Ok(Decision::new((), Some(event)))
    });
    deleted.await
}

pub(super) async fn delete_record(
    caller: Authorized<scope::WriteRecords>,
    State(app): State<App>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<RecordId>,
    Expecting(expected): Expecting,
    origin: Origin,
) -> Result<Response, HttpError> {
    let done = delete(&app.commands, &origin, &caller.org, kind, &id, &expected).await?;
    Ok(answer::no_content(&done))
}
