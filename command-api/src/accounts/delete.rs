//! `POST /auth/delete`: the end of one's own account; the person is forgotten.

use access::{EndingToken, Person};
use axum::extract::State;
use axum::response::Response;
use domain::account::{Account, AccountDeletion, Email};
use event_log::Binding;
use service::HttpError;

use super::address::ClientAddress;
use super::change_password::check;
use super::forget::{ForgetError, Forgotten, forget};
use super::stored::{load, unseal};
use super::throttle::Name;
use super::until_ended;
use crate::body::SmallBody;
use crate::commands::Earlier;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, LogError, Origin, answer};

pub(super) async fn delete_account(
    EndingToken { person, in_force }: EndingToken,
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let AccountDeletion { password } = body.read(AccountDeletion::parse)?;
    // A receipt says nothing of passwords, so that none can be guessed from it.
    let origin = repeatable.by_person(&person, b"");
    if !in_force {
        return again(&app, &origin).await;
    }
    let throttles = app.accounts.throttles();
    let entered = throttles.sign_in(address.0, Name::Account(person.account_id));
    let account = check(&app, entered.await?, &person, password).await?;
    let account = account.ok_or_else(|| HttpError::unauthorized("password: is wrong"))?;
    let email = address_of(&app, &account).await?;
    let email = email.ok_or(access::Refusal::InvalidToken)?;
    let forgotten = carried_through(&app, origin, person, email).await?;
    Ok(answer::no_content(&Done {
        answer: (),
        position: forgotten.position,
    }))
}

/// The answer to a repeat: the token ended with the account.
async fn again(app: &App, origin: &Origin) -> Result<Response, HttpError> {
    match app.commands.earlier(origin).await {
        Ok(Earlier::Repeat(repeated)) => Ok(answer::no_content(&repeated.done(drop))),
        Ok(Earlier::None(_)) | Err(CommandError::<super::NoAccount>::Refused(_)) => {
            Err(access::Refusal::InvalidToken.into())
        }
        Err(error) => Err(into_http(error)),
    }
}

async fn address_of(app: &App, account: &Account) -> Result<Option<Email>, LogError> {
    let binding = Binding::Email(account.id);
    let email = unseal(&app.commands, &binding, &account.email).await?;
    Ok(email.and_then(|email| Email::parse(&email).ok()))
}

/// Forgets a person to the end, also where nobody waits for the answer any more.
async fn carried_through(
    app: &App,
    origin: Origin,
    person: Person,
    email: Email,
) -> Result<Forgotten, HttpError> {
    let app = app.clone();
    let forgetting = tokio::spawn(async move {
        // The address may have gone to somebody else since it was read.
        if load(&app.commands, person.account_id).await?.is_none() {
            return Err(CommandError::Refused(super::NoAccount));
        }
        let forgotten = forget(&app.commands, &origin, &email).await?;
        until_ended(&app.access, &person).await;
        Ok(forgotten)
    });
    forgetting
        .await
        .map_err(HttpError::internal)?
        .map_err(into_http)
}

fn into_http(error: ForgetError) -> HttpError {
    match error {
        CommandError::Refused(_) => access::Refusal::InvalidToken.into(),
        CommandError::OtherRequest => CommandError::<std::convert::Infallible>::OtherRequest.into(),
        CommandError::Log(error) => error.into(),
    }
}
