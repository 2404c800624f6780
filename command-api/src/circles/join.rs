//! `POST /circles/join`: joins a circle with a code.

use access::AccountToken;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::circles::{self, CannotJoin, Circle, JoinRequest};
use schemas::{AccountId, CircleId, Event, OrgId};
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::invite::code_hash;
use super::stream;
use crate::commands::{Decision, Outcome, Past};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, LogError, Origin, Refusal, answer, body};

#[derive(Serialize)]
struct Joined {
    circle_id: CircleId,
}

impl Refusal for CannotJoin {
    fn into_http(self) -> HttpError {
        match self {
            Self::UnknownCode => HttpError::not_found(self.to_string()),
            Self::Expired => HttpError::new(StatusCode::GONE, self.to_string()),
        }
    }
}

/// The circle that a code leads to, and the part of the log where it stands.
async fn find(app: &App, code: &str) -> Result<Option<(CircleId, OrgId)>, LogError> {
    let claim = app.commands.log().claim("circle invite", code);
    let last = app.commands.log().last(&claim).await?;
    let holder = last.and_then(|last| match last.event {
        Event::ClaimClaimed(claimed) => Some(claimed.holder),
        _ => None,
    });
    Ok(holder.and_then(|holder| {
        let (circle, org) = holder.split_once(' ')?;
        Some((CircleId::from(circle), OrgId::from(org)))
    }))
}

async fn join(
    app: &App,
    origin: &Origin,
    account: AccountId,
    code: &str,
) -> Result<Done<Joined>, CommandError<CannotJoin>> {
    let found = find(app, code).await?;
    let (circle_id, org) = found.ok_or(CommandError::Refused(CannotJoin::UnknownCode))?;
    let (stream, hash) = (stream(&org, &circle_id), code_hash(app, code));
    let holder = circle_id.as_str();
    let commands = &app.commands;
    let joined = commands.execute_once(origin, &stream, Past::Whole, holder, |past, now| {
        let circle = Circle::fold(past);
        let event = circles::join(circle.as_ref(), account, &hash, now)?;
        Ok(Decision::new((), event))
    });
    let position = match joined.await? {
        Outcome::First(done) => {
            app.circles.learn(done.position, origin).await;
            done.position
        }
        Outcome::Repeat(repeated) => repeated.position,
    };
    let answer = Joined { circle_id };
    Ok(Done { answer, position })
}

pub(super) async fn join_circle(
    caller: AccountToken,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let request = body::read_as(&bytes, JoinRequest::parse)?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let done = join(&app, &origin, account, &request.code).await?;
    Ok(answer::json(StatusCode::OK, done))
}
