//! `POST /auth/delete`: deletes the caller's account; the person is forgotten.

use access::EndingToken;
use axum::extract::State;
use axum::response::Response;
use domain::account::AccountDeletion;
use schemas::AccountId;
use service::HttpError;

use super::address::ClientAddress;
use super::change_password::check;
use super::forget::{ForgetError, Forgotten, finish, forget};
use super::throttle::Name;
use super::until_ended;
use crate::body::SmallBody;
use crate::commands::Earlier;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, Origin, answer};

pub(super) async fn delete_account(
    EndingToken { person, in_force }: EndingToken,
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let AccountDeletion { password } = body.read(AccountDeletion::parse)?;
    // A receipt contains nothing of passwords, so that none can be guessed from it.
    let origin = repeatable.by_person(&person, b"");
    if !in_force {
        return again(app, origin, person.account_id).await;
    }
    let throttles = app.accounts.throttles();
    let entered = throttles.sign_in(address.0, Name::Account(person.account_id));
    let account = check(&app, entered.await?, &person, password).await?;
    account.ok_or_else(|| HttpError::unauthorized("password: is wrong"))?;
    let forgotten = carried_through(async move {
        let forgotten = forget(&app.commands, &origin, person.account_id).await?;
        until_ended(&app.access, &person).await;
        Ok(forgotten)
    });
    Ok(answer::no_content(&Done {
        answer: (),
        position: forgotten.await?.position,
    }))
}

/// Answers a repeat, whose token ended with the account, once nothing is left to do.
async fn again(app: App, origin: Origin, id: AccountId) -> Result<Response, HttpError> {
    match app.commands.earlier(&origin).await {
        Ok(Earlier::Repeat(repeated)) => {
            carried_through(async move { finish(&app.commands, &origin, id).await }).await?;
            Ok(answer::no_content(&repeated.done(drop)))
        }
        Ok(Earlier::None(_)) | Err(CommandError::<super::NoAccount>::Refused(_)) => {
            Err(access::Refusal::InvalidToken.into())
        }
        Err(error) => Err(into_http(error)),
    }
}

/// Forgets to the end, even if no client waits for the response any more.
async fn carried_through(
    forgetting: impl Future<Output = Result<Forgotten, ForgetError>> + Send + 'static,
) -> Result<Forgotten, HttpError> {
    tokio::spawn(forgetting)
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
