//! `POST /dashboard/invite/look`, `POST /dashboard/invite/accept`: joining an organization's people
//! by a link.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use domain::account::{Registration, SignIn};
use domain::organization::{Acceptance, CannotJoin};
use serde::Serialize;
use serde_json::json;
use service::HttpError;

use super::origin::OwnPage;
use crate::accounts::{ClientAddress, NOT_KEPT, session_for, with_code};
use crate::body::SmallBody;
use crate::follow::until;
use crate::organizations::{Invitation, Joined, Joiner, accept, look};
use crate::{App, Done, Origin, Refusal, answer};

impl Refusal for CannotJoin {
    fn into_http(self) -> HttpError {
        let message = self.to_string();
        match self {
            Self::Unknown => HttpError::not_found(message),
            Self::Expired => HttpError::new(StatusCode::GONE, message),
            Self::OtherAddress => HttpError::forbidden(message),
            Self::AccountExists => HttpError::conflict(message),
        }
    }
}

/// What the page of an invite shows before it is accepted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    organization: String,
    email: String,
    expires_at: DateTime<Utc>,
    /// Whether the address has an account.
    account: bool,
    /// Whether the caller is signed in to it.
    signed_in: bool,
}

pub(super) async fn look_at_invite(
    _: OwnPage,
    State(app): State<App>,
    address: ClientAddress,
    headers: HeaderMap,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let Acceptance { code, .. } = body.read(Acceptance::parse)?;
    let looking = look(&app.commands, &code);
    let invitation = with_code(&app, address, &code, looking).await?;
    let shown = Shown {
        signed_in: is_signed_in(&app, &headers, &invitation),
        organization: invitation.organization,
        email: invitation.email.as_str().to_owned(),
        expires_at: invitation.expires_at,
        account: invitation.holder.is_some(),
    };
    Ok((NOT_KEPT, axum::Json(shown)).into_response())
}

pub(super) async fn accept_invite(
    _: OwnPage,
    State(app): State<App>,
    address: ClientAddress,
    origin: Origin,
    headers: HeaderMap,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let acceptance = body.read(Acceptance::parse)?;
    let looking = look(&app.commands, &acceptance.code);
    let invitation = with_code(&app, address, &acceptance.code, looking).await?;
    let Acceptance {
        code,
        name,
        password,
    } = acceptance;
    let email = invitation.email.as_str().to_owned();
    let joined = match (invitation.holder, password) {
        (Some(holder), _) if is_signed_in(&app, &headers, &invitation) => {
            join(&app, &origin, &code, Joiner::Account(holder)).await?
        }
        (Some(_), Some(password)) => {
            // Shows whose account it is; the page signs in once more for a session.
            let session = session_for(&app, address, SignIn { email, password }).await?;
            join(&app, &origin, &code, Joiner::Account(session.account())).await?
        }
        (Some(_), None) => return Err(CannotJoin::AccountExists.into_http()),
        (None, password) => {
            let wanted = json!({ "name": name, "email": email, "password": password });
            let registration = Registration::parse(wanted).map_err(Refusal::into_http)?;
            join(&app, &origin, &code, Joiner::New(&registration)).await?
        }
    };
    Ok(answer::no_content(&joined.map(drop)))
}

async fn join(
    app: &App,
    origin: &Origin,
    code: &str,
    joiner: Joiner<'_>,
) -> Result<Done<Joined>, HttpError> {
    let passwords = app.accounts.passwords();
    let joined = accept(&app.commands, origin, passwords, code, joiner).await?;
    let Joined { org, account } = &joined.answer;
    let known = || app.access.organizations_of(*account).contains(org);
    until(known, "A membership").await;
    Ok(joined)
}

/// Whether the sender of a request is signed in to the account that has the invited address.
fn is_signed_in(app: &App, headers: &HeaderMap, invitation: &Invitation) -> bool {
    let person = app.access.person_of_session(headers).ok();
    person.is_some_and(|person| Some(person.account_id) == invitation.holder)
}
