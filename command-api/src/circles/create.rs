//! `POST /circles`, `POST /api/v1/circles`: makes a circle.

use std::convert::Infallible;

use access::{AccountToken, Authorized, scope};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::circles::{self, NameRequest};
use event_log::Owner;
use schemas::CircleId;
use schemas::circle::CircleOwner;
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::{nobodys, stream};
use crate::commands::{Decision, Outcome, Past};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, Origin, answer, body};

/// A circle that was just made.
#[derive(Clone, Debug, Serialize)]
struct NewCircle {
    id: CircleId,
    name: String,
}

async fn create(
    app: &App,
    origin: &Origin,
    owner: CircleOwner,
    request: NameRequest,
) -> Result<Done<NewCircle>, CommandError<Infallible>> {
    let commands = &app.commands;
    let (org, sealing) = match &owner {
        CircleOwner::Account(account) => (nobodys(), Owner::Account(*account)),
        CircleOwner::Organization(org) => (org.clone(), Owner::Organization(org.clone())),
    };
    let id = CircleId::from(commands.random.id());
    let name = commands.log().vault().seal(&sealing, &request.name).await?;
    let stream = stream(&org, &id);
    let made = commands.execute_once(origin, &stream, Past::Last, id.as_str(), |_, _| {
        Ok(Decision {
            answer: (),
            events: circles::create(id.clone(), owner.clone(), name.clone()),
        })
    });
    let (id, position) = match made.await? {
        Outcome::First(done) => {
            app.circles.learn(done.position, origin).await;
            (id, done.position)
        }
        Outcome::Repeat(repeated) => (CircleId::new(repeated.holder), repeated.position),
    };
    let name = request.name;
    let answer = NewCircle { id, name };
    Ok(Done { answer, position })
}

pub(super) async fn create_circle(
    caller: AccountToken,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let request = body::read_as(&bytes, NameRequest::parse)?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let done = create(&app, &origin, CircleOwner::Account(account), request).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}

pub(super) async fn create_circle_of_org(
    caller: Authorized<scope::ManageCircles>,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let request = body::read_as(&bytes, NameRequest::parse)?;
    let receipt = idempotency_key.receipt(app.commands.log(), &caller, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let owner = CircleOwner::Organization(caller.org.clone());
    let done = create(&app, &origin, owner, request).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}
