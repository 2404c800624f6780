//! `POST /auth/password`: another password. All tokens end but the one that it answers with.

use access::{AccountToken, Person};
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::account::{Account, PasswordChange, may_be_password};
use event_log::Owner;
use schemas::Event;
use schemas::account::PasswordChanged;
use service::{HttpError, RequestContext};

use super::address::ClientAddress;
use super::session::{NOT_KEPT, Session};
use super::stored::{account_stream, load, unseal};
use super::until_ended;
use crate::answer::position_header;
use crate::commands::{Decision, Past};
use crate::{App, Done, LogError, Origin, body};

/// Why the password stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the old password is wrong")]
    WrongPassword,
    #[error("the account is no more")]
    Gone,
}

impl crate::Refusal for Refusal {
    fn into_http(self) -> HttpError {
        HttpError::unauthorized(self.to_string())
    }
}

pub(super) async fn change_password(
    AccountToken(person): AccountToken,
    State(app): State<App>,
    context: RequestContext,
    address: ClientAddress,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let change = body::read_as(&bytes, PasswordChange::parse)?;
    let entered = app
        .accounts
        .throttles()
        .enter(address.0, person.account_id)?;
    let account = check(&app, &person, change.old).await?;
    entered.succeeded();
    let done = set(&app, &Origin::of(&context), &account, change.new).await?;
    let session = Session::open(&app, &done.answer).await?;
    let session = session.ok_or_else(|| crate::Refusal::into_http(Refusal::Gone))?;
    until_ended(&app.access, &person).await;
    let position = position_header(done.position);
    Ok((position, NOT_KEPT, Json(session)).into_response())
}

/// The account, if this is its password.
async fn check(app: &App, person: &Person, old: String) -> Result<Account, HttpError> {
    let commands = &app.commands;
    let account = load(commands, person.account_id).await?;
    let account = account.ok_or_else(|| crate::Refusal::into_http(Refusal::Gone))?;
    let hash = unseal(commands, account.id, &account.password_hash).await?;
    let old = if may_be_password(&old) {
        old
    } else {
        String::new()
    };
    let right = commands.passwords.verify(old, hash).await;
    if right.map_err(LogError::from)? {
        Ok(account)
    } else {
        Err(crate::Refusal::into_http(Refusal::WrongPassword))
    }
}

/// Sets the password of an account whose present one was just shown.
async fn set(
    app: &App,
    origin: &Origin,
    shown: &Account,
    new: String,
) -> Result<Done<Account>, HttpError> {
    let commands = &app.commands;
    let hash = commands.passwords.hash(&commands.random, new).await;
    let hash = hash.map_err(LogError::from)?;
    let sealed = commands
        .log()
        .vault()
        .seal(&Owner::Account(shown.id), &hash)
        .await
        .map_err(LogError::from)?;
    let stream = account_stream(shown.id);
    let changed = commands.execute(origin, &stream, Past::Whole, |events, _| {
        let account = Account::fold(events).filter(Account::is_open);
        let account = account.ok_or(Refusal::Gone)?;
        // Somebody else was quicker: what was shown is the old one by now.
        if account.passwords != shown.passwords {
            return Err(Refusal::WrongPassword);
        }
        let event = Event::AccountPasswordChanged(PasswordChanged {
            account_id: account.id,
            password_hash: sealed.clone(),
        });
        let changed = Account {
            passwords: account.passwords + 1,
            ..account
        };
        Ok(Decision::new(changed, Some(event)))
    });
    Ok(changed.await?)
}
