//! `DELETE /api/v1/keys/{keyId}`: withdraws an API key.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::key;
use schemas::{AggregateType, KeyId, OrgId, StreamId};
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, NotFound, Origin, answer};

/// Withdraws a key; one that does not work any more counts as not there.
pub async fn revoke(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    key_id: &KeyId,
) -> Result<Done<()>, CommandError<NotFound>> {
    let stream = StreamId::new(org, AggregateType::Key, key_id.as_str());
    let revoked = commands.execute(origin, &stream, Past::Last, |past, _| {
        let last = past.last().map(|recorded| &recorded.event);
        let event = key::revoke(key_id.clone(), last).ok_or(NotFound("key"))?;
        Ok(Decision::new((), Some(event)))
    });
    revoked.await
}

pub(super) async fn revoke_key(
    caller: Authorized<scope::ManageKeys>,
    State(app): State<App>,
    Path(id): Path<KeyId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let done = revoke(&app.commands, &origin, &caller.org, &id).await?;
    Ok(answer::no_content(&done))
}
