//! `POST /location/pause`, `POST /location/resume`: hides a person for a while, or shows them
//! again.

use std::convert::Infallible;

use access::AccountToken;
use axum::extract::State;
use axum::response::Response;
use domain::FieldError;
use domain::circles::{self, PauseRequest, Pauses};
use schemas::StreamId;
use service::HttpError;

use crate::body::{AnyBody, JsonBody};
use crate::commands::{Decision, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, answer};

pub(super) async fn pause_sharing(
    caller: AccountToken,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(PauseRequest::parse)?;
    let origin = repeatable.by_person(&caller, &body);
    let account = caller.account_id;
    let stream = StreamId::of_account(account);
    let commands = &app.commands;
    let paused = commands.execute_once(&origin, &stream, Past::Whole, "", |past, now| {
        let event = circles::pause(account, &Pauses::fold(past), request, now)?;
        Ok(Decision::new((), event))
    });
    let paused: Result<_, CommandError<FieldError>> = paused.await;
    let paused = app.circles.learned(&origin, paused?).await;
    Ok(answer::no_content(&paused.answered(drop)))
}

pub(super) async fn resume_sharing(
    caller: AccountToken,
    State(app): State<App>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_person(&caller, &body);
    let account = caller.account_id;
    let stream = StreamId::of_account(account);
    let commands = &app.commands;
    let resumed = commands.execute_once(&origin, &stream, Past::Whole, "", |past, now| {
        let event = circles::resume(account, &Pauses::fold(past), now);
        Ok(Decision::new((), event))
    });
    let resumed: Result<_, CommandError<Infallible>> = resumed.await;
    let resumed = app.circles.learned(&origin, resumed?).await;
    Ok(answer::no_content(&resumed.answered(drop)))
}
