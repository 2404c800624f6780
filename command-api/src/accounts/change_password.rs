//! `POST /auth/password`: changes the password. All tokens end except the one that it returns.

use access::{EndingToken, Person};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, PasswordChange};
use event_log::{Binding, Position};
use schemas::account::PasswordChanged;
use schemas::{Event, StreamId};
use service::HttpError;

use super::address::ClientAddress;
use super::password_queue::Visitor;
use super::session::{NOT_KEPT, Session};
use super::stored::{is_password, load};
use super::throttle::{Name, Try};
use super::token_replay::by_password;
use super::until_ended;
use crate::answer::position_header;
use crate::body::JsonBody;
use crate::commands::{Decision, Earlier, Outcome, Past, Repeated};
use crate::repeatable::Repeatable;
use crate::{App, LogError, Origin};

/// Why the password was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the old password is wrong")]
    WrongPassword,
    #[error("the account no longer exists")]
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
    // A receipt contains nothing of passwords, so that none can be guessed from it.
    let origin = repeatable.by_person(&person, b"");
    let throttles = app.accounts.throttles();
    let entered = throttles.sign_in(address.0, Name::Account(person.account_id));
    let entered = entered.await?;
    let earlier = app.commands.earlier::<Refusal>(&origin).await;
    let (entered, earlier) = entered.unless_failed(earlier).await?;
    if let Earlier::Repeat(repeated) = earlier {
        return again(&app, entered, &repeated, change.new).await;
    }
    if !in_force {
        entered.forgive().await;
        return Err(access::Refusal::InvalidToken.into());
    }
    let visitor = entered.visitor();
    let account = check(&app, entered, &person, change.old).await?;
    let account = account.ok_or_else(|| crate::Refusal::into_http(Refusal::WrongPassword))?;
    match set(&app, &origin, visitor, &account, change.new.clone()).await? {
        Outcome::First(done) => {
            until_ended(&app.access, &person).await;
            signed_in(&app, &done.answer, done.position).await
        }
        Outcome::Repeat(repeated) => {
            let entered = throttles.sign_in(address.0, Name::Account(person.account_id));
            again(&app, entered.await?, &repeated, change.new).await
        }
    }
}

/// Answers a repeat, which has to present the password that the first request set.
async fn again(
    app: &App,
    entered: Try<'_>,
    repeated: &Repeated,
    new: String,
) -> Result<Response, HttpError> {
    let account = by_password(app, entered, repeated, new).await?;
    signed_in(app, &account, repeated.position).await
}

async fn signed_in(
    app: &App,
    account: &Account,
    position: Position,
) -> Result<Response, HttpError> {
    let session = Session::open(app, account).await?;
    let session = session.ok_or_else(|| crate::Refusal::into_http(Refusal::Gone))?;
    Ok((position_header(position), NOT_KEPT, Json(session)).into_response())
}

/// Returns the account if this is its password. Either way the attempt has been counted.
pub(super) async fn check(
    app: &App,
    entered: Try<'_>,
    person: &Person,
    password: String,
) -> Result<Option<Account>, LogError> {
    let checking = async {
        let Some(account) = load(&app.commands, person.account_id).await? else {
            return Ok(None);
        };
        let right = is_password(app, entered.visitor(), &account, password).await?;
        Ok(right.then_some(account))
    };
    let account = checking.await;
    entered.settle(&account).await;
    account
}

/// Sets the password of an account whose current one was just presented.
async fn set(
    app: &App,
    origin: &Origin,
    visitor: Visitor,
    shown: &Account,
    new: String,
) -> Result<Outcome<Account>, HttpError> {
    let commands = &app.commands;
    let passwords = app.accounts.passwords();
    let hash = passwords.hash_for(visitor, &commands.random, new);
    let hash = hash.await.map_err(LogError::from)?;
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
        // Another change was faster: the presented password is the old one by now.
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
