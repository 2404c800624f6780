//! `POST /dashboard/people`, `DELETE /dashboard/people/{accountId}`,
//! `DELETE /dashboard/people/invites/{inviteId}`: an organization's people, by one of them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::organization::{Invitee, Refusal};
use schemas::{AccountId, InviteId};
use serde::Serialize;
use service::HttpError;

use super::origin::{OnPage, PageAddress};
use crate::accounts::NOT_KEPT;
use crate::body::JsonBody;
use crate::follow::until;
use crate::organizations::{invite, link, remove, withdraw};
use crate::{App, Origin, answer};

impl crate::Refusal for Refusal {
    fn into_http(self) -> HttpError {
        let message = self.to_string();
        match self {
            Self::NotStaff => HttpError::forbidden(message),
            Self::Nobody => HttpError::not_found(message),
            Self::Member | Self::LastOwner | Self::Full(_) => HttpError::conflict(message),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invited {
    link: String,
    expires_at: DateTime<Utc>,
}

pub(super) async fn invite_person(
    OnPage(staff): OnPage,
    PageAddress(base): PageAddress,
    State(app): State<App>,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let Invitee { email } = body.read(Invitee::parse)?;
    let by = Some(staff.person.account_id);
    let (commands, people) = (&app.commands, &app.people);
    let done = invite(commands, &origin, &staff.org, &email, by, people).await?;
    let done = done.map(|made| Invited {
        link: link(&base, &made.code),
        expires_at: made.expires_at,
    });
    Ok((NOT_KEPT, answer::json(StatusCode::CREATED, done)).into_response())
}

/// Removes somebody; a caller who names themselves leaves.
pub(super) async fn remove_person(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(account): Path<AccountId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let by = Some(staff.person.account_id);
    let done = remove(&app.commands, &origin, &staff.org, account, by).await?;
    let gone = || !app.access.organizations_of(account).contains(&staff.org);
    until(gone, "The end of a membership").await;
    Ok(answer::no_content(&done))
}

pub(super) async fn withdraw_invite(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(id): Path<InviteId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let by = Some(staff.person.account_id);
    let done = withdraw(&app.commands, &origin, &staff.org, &id, by).await?;
    Ok(answer::no_content(&done))
}
