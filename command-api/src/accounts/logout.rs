//! `POST /auth/logout`: ends the token that it is sent with.

use std::convert::Infallible;

use access::{EndingToken, Person};
use axum::extract::State;
use axum::response::Response;
use schemas::account::SignedOut;
use schemas::{Event, StreamId};
use service::HttpError;

use super::until_ended;
use crate::commands::{Decision, Earlier, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, Origin, answer};

pub(super) async fn sign_out(
    EndingToken { person, in_force }: EndingToken,
    State(app): State<App>,
    repeatable: Repeatable,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_person(&person, b"");
    if !in_force && !is_repeat(&app, &origin).await? {
        return Err(access::Refusal::InvalidToken.into());
    }
    let done = end(&app, &origin, &person).await?;
    Ok(answer::no_content(&done))
}

/// Ends a token, and waits for this process to know of it.
pub(crate) async fn end(
    app: &App,
    origin: &Origin,
    person: &Person,
) -> Result<Done<()>, CommandError<Infallible>> {
    let commands = &app.commands;
    let (stream, holder) = (
        StreamId::of_account(person.account_id),
        person.account_id.to_string(),
    );
    let signing_out = commands.execute_once(origin, &stream, Past::Last, &holder, |_, _| {
        let event = Event::AccountSignedOut(SignedOut {
            account_id: person.account_id,
            token_id: person.token_id.clone(),
            expires_at: person.expires_at,
        });
        Ok(Decision::new((), Some(event)))
    });
    let done = signing_out.await?.answered(drop);
    until_ended(&app.access, person).await;
    Ok(done)
}

/// Whether the request was carried out before.
async fn is_repeat(app: &App, origin: &Origin) -> Result<bool, HttpError> {
    let earlier: Result<Earlier, CommandError<Infallible>> = app.commands.earlier(origin).await;
    Ok(matches!(earlier?, Earlier::Repeat(_)))
}
