//! `POST /auth/logout`: ends the token that it comes with.

use access::AccountToken;
use axum::extract::State;
use axum::response::Response;
use schemas::Event;
use schemas::account::SignedOut;
use service::{HttpError, RequestContext};

use super::stored::account_stream;
use super::until_ended;
use crate::commands::{Decision, Past};
use crate::{App, CommandError, Done, Origin, answer};

pub(super) async fn sign_out(
    AccountToken(person): AccountToken,
    State(app): State<App>,
    context: RequestContext,
) -> Result<Response, HttpError> {
    let (origin, stream) = (Origin::of(&context), account_stream(person.account_id));
    let commands = &app.commands;
    let signing_out = commands.execute(&origin, &stream, Past::Last, |_, _| {
        let event = Event::AccountSignedOut(SignedOut {
            account_id: person.account_id,
            token_id: person.token_id.clone(),
            expires_at: person.expires_at,
        });
        Ok(Decision::new((), Some(event)))
    });
    let done: Result<Done<()>, CommandError<std::convert::Infallible>> = signing_out.await;
    let done = done?;
    until_ended(&app.access, &person).await;
    Ok(answer::no_content(&done))
}
