//! `POST /location/pause`, `POST /location/resume`: hides a person for a while, or shows them
//! again.

use std::convert::Infallible;

use access::AccountToken;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::FieldError;
use domain::circles::{self, PauseRequest, Pauses};
use event_log::SYSTEM_ORG;
use schemas::{AccountId, AggregateType, OrgId, StreamId};
use service::{HttpError, RequestContext};

use crate::commands::{Decision, Outcome, Past};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, Origin, answer, body};

fn stream(account: AccountId) -> StreamId {
    let org = OrgId::from(SYSTEM_ORG);
    StreamId::new(&org, AggregateType::Account, account.to_string())
}

/// From the answer on, this process knows.
async fn settle(app: &App, origin: &Origin, outcome: Outcome<()>) -> Response {
    let done = match outcome {
        Outcome::First(done) => {
            app.circles.learn(done.position, origin).await;
            done
        }
        Outcome::Repeat(repeated) => Done {
            answer: (),
            position: repeated.position,
        },
    };
    answer::no_content(&done)
}

pub(super) async fn pause_sharing(
    caller: AccountToken,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let request = body::read_as(&bytes, |body| PauseRequest::parse(body, app.commands.now()))?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let stream = stream(account);
    let commands = &app.commands;
    let paused = commands.execute_once(&origin, &stream, Past::Whole, "", |past, now| {
        let event = circles::pause(account, &Pauses::fold(past), request, now)?;
        Ok(Decision::new((), event))
    });
    let paused: Result<_, CommandError<FieldError>> = paused.await;
    Ok(settle(&app, &origin, paused?).await)
}

pub(super) async fn resume_sharing(
    caller: AccountToken,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let stream = stream(account);
    let commands = &app.commands;
    let resumed = commands.execute_once(&origin, &stream, Past::Whole, "", |past, now| {
        let event = circles::resume(account, &Pauses::fold(past), now);
        Ok(Decision::new((), event))
    });
    let resumed: Result<_, CommandError<Infallible>> = resumed.await;
    Ok(settle(&app, &origin, resumed?).await)
}
