//! `POST /auth/login`: an access token for an e-mail address and a password.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, Email, SignIn, may_be_password};
use event_log::Binding;
use schemas::AccountId;
use service::HttpError;

use super::address::ClientAddress;
use super::password_queue::Visitor;
use super::session::{NOT_KEPT, Session};
use super::stored::{Claim, load, unseal};
use super::throttle::Name;
use crate::body::SmallBody;
use crate::{App, Commands, LogError};

/// Looked up if there is no account, so that it takes as long.
pub(super) const NOBODY: AccountId = AccountId(0);

pub(super) async fn sign_in(
    State(app): State<App>,
    address: ClientAddress,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let session = session_for(&app, address, body.read(SignIn::parse)?).await?;
    Ok((NOT_KEPT, Json(session)).into_response())
}

/// Opens a session for a client that knows an address and its password; guessing is slowed.
pub(crate) async fn session_for(
    app: &App,
    address: ClientAddress,
    SignIn { email, password }: SignIn,
) -> Result<Session, HttpError> {
    let email = Email::parse(&email).ok();
    let name = email.as_ref().map_or(Name::NoEmail, Name::Email);
    let entered = app.accounts.throttles().sign_in(address.0, name).await?;
    let visitor = entered.visitor();
    let session = attempt(app, visitor, email.as_ref(), password).await;
    entered.settle(&session).await;
    session?.ok_or_else(wrong)
}

async fn attempt(
    app: &App,
    visitor: Visitor,
    email: Option<&Email>,
    password: String,
) -> Result<Option<Session>, LogError> {
    let (account, hash) = find(&app.commands, email).await?;
    let password = if may_be_password(&password) {
        password
    } else {
        String::new()
    };
    let passwords = app.accounts.passwords();
    let right = passwords.verify_for(visitor, password, hash).await?;
    match account {
        Some(account) if right => Session::open(app, &account).await,
        _ => Ok(None),
    }
}

/// The same answer for an unknown address and a wrong password.
fn wrong() -> HttpError {
    HttpError::unauthorized("wrong e-mail address or password")
}

/// The account of an address and its password's hash. The same steps are taken if there is none.
async fn find(
    commands: &Commands,
    email: Option<&Email>,
) -> Result<(Option<Account>, Option<String>), LogError> {
    let holder = match email {
        Some(email) => Claim::of_email(commands, email).await?.holder(),
        None => None,
    };
    let account = load(commands, holder.unwrap_or(NOBODY)).await?;
    let hash = match &account {
        Some(account) => {
            unseal(
                commands,
                &Binding::Password(account.id),
                &account.password_hash,
            )
            .await?
        }
        None => None,
    };
    Ok((account, hash))
}
