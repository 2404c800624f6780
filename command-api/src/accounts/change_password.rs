//! `POST /auth/password`: another password. All tokens end but the one that it answers with.

use access::{EndingToken, Person};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, PasswordChange, may_be_password};
use event_log::{Binding, Position};
use schemas::account::PasswordChanged;
use schemas::{Event, StreamId};
use service::HttpError;

use super::address::ClientAddress;
use super::logout::is_repeat;
use super::session::{NOT_KEPT, Session};
use super::stored::{load, unseal};
use super::until_ended;
use crate::answer::position_header;
use crate::body::JsonBody;
use crate::commands::{Decision, Outcome, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, LogError, Origin};

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
    EndingToken { person, in_force }: EndingToken,
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let change = body.read(PasswordChange::parse)?;
    // A receipt says nothing of passwords, so that none can be guessed from it.
    let origin = repeatable.by_person(&person, b"");
    let throttles = app.accounts.throttles();
    let entered = throttles.enter(address.0, person.account_id)?;
    if is_repeat(&app, &origin).await? {
        let answer = again(&app, &person, change.new).await;
        if answer.is_ok() {
            entered.succeeded();
        }
        return answer;
    }
    if !in_force {
        entered.succeeded();
        return Err(access::Refusal::InvalidToken.into());
    }
    let account = check(&app, &person, change.old).await;
    if !is_wrong(&account) {
        entered.succeeded();
    }
    let account = account?;
    let done = match set(&app, &origin, &account, change.new.clone()).await? {
        Outcome::First(done) => done,
        Outcome::Repeat(_) => return again(&app, &person, change.new).await,
    };
    until_ended(&app.access, &person).await;
    signed_in(&app, &done.answer, Some(done.position)).await
}

/// The answer to a repeat, which shows that it has the password that the first one set.
async fn again(app: &App, person: &Person, new: String) -> Result<Response, HttpError> {
    let account = check(app, person, new).await;
    if is_wrong(&account) {
        return Err(CommandError::<Refusal>::OtherRequest.into());
    }
    signed_in(app, &account?, None).await
}

fn is_wrong(checked: &Result<Account, HttpError>) -> bool {
    let error = checked.as_ref().err();
    error.is_some_and(|error| error.status == StatusCode::UNAUTHORIZED)
}

async fn signed_in(
    app: &App,
    account: &Account,
    position: Option<Position>,
) -> Result<Response, HttpError> {
    let session = Session::open(app, account).await?;
    let session = session.ok_or_else(|| crate::Refusal::into_http(Refusal::Gone))?;
    Ok((position.map(position_header), NOT_KEPT, Json(session)).into_response())
}

/// The account, if this is its password.
async fn check(app: &App, person: &Person, password: String) -> Result<Account, HttpError> {
    let commands = &app.commands;
    let account = load(commands, person.account_id).await?;
    let account = account.ok_or_else(|| crate::Refusal::into_http(Refusal::Gone))?;
    let hash = unseal(
        commands,
        &Binding::Password(account.id),
        &account.password_hash,
    )
    .await?;
    let password = if may_be_password(&password) {
        password
    } else {
        String::new()
    };
    let right = commands.passwords.verify(password, hash).await;
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
) -> Result<Outcome<Account>, HttpError> {
    let commands = &app.commands;
    let hash = commands.passwords.hash(&commands.random, new).await;
    let hash = hash.map_err(LogError::from)?;
    let sealed = commands
        .log()
        .vault()
        .seal(&Binding::Password(shown.id), &hash)
        .await
        .map_err(LogError::from)?;
    let (stream, holder) = (StreamId::of_account(shown.id), shown.id.to_string());
    let changed = commands.execute_once(origin, &stream, Past::Whole, &holder, |events, _| {
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
