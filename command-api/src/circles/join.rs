//! `POST /circles/join`: joins a circle with a code.

use access::AccountToken;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::circles::{self, CannotJoin, Circle, Full, JoinRequest};
use schemas::{AccountId, CircleId, Event, OrgId};
use serde::Serialize;
use service::HttpError;

use super::invite::code_hash;
use super::stream;
use crate::body::JsonBody;
use crate::bounds::TooMany;
use crate::commands::{Decision, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, LogError, Origin, Refusal, answer};

#[derive(Serialize)]
struct Joined {
    circle_id: CircleId,
}

/// Why joining failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum NotJoined {
    #[error(transparent)]
    CannotJoin(#[from] CannotJoin),
    #[error(transparent)]
    Full(#[from] Full),
}

impl Refusal for NotJoined {
    fn into_http(self) -> HttpError {
        match self {
            Self::CannotJoin(refusal) => refusal.into_http(),
            Self::Full(full) => TooMany::from(full).into_http(),
        }
    }
}

impl Refusal for CannotJoin {
    fn into_http(self) -> HttpError {
        match self {
            Self::UnknownCode => HttpError::not_found(self.to_string()),
            Self::Expired => HttpError::new(StatusCode::GONE, self.to_string()),
        }
    }
}

/// The circle that a code leads to, and the part of the log it is in.
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
) -> Result<Done<Joined>, CommandError<NotJoined>> {
    let found = find(app, code).await?;
    let (circle_id, org) = found.ok_or(CommandError::Refused(CannotJoin::UnknownCode.into()))?;
    let (stream, hash) = (stream(&org, &circle_id), code_hash(app, code));
    let holder = circle_id.as_str();
    let (commands, bounds) = (&app.commands, app.bounds.of_circle());
    let joined = commands.execute_once(origin, &stream, Past::Whole, holder, |past, now| {
        let circle = Circle::fold(past);
        let event = circles::join(circle.as_ref(), account, &hash, now)?;
        if event.is_some() {
            bounds.one_more_member(circle.as_ref(), account)?;
        }
        Ok(Decision::new((), event))
    });
    let joined = app.circles.learned(origin, joined.await?).await;
    Ok(joined.answered(drop).map(|()| Joined { circle_id }))
}

pub(super) async fn join_circle(
    caller: AccountToken,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(JoinRequest::parse)?;
    let origin = repeatable.by_person(&caller, &body);
    let done = join(&app, &origin, caller.account_id, &request.code).await?;
    Ok(answer::json(StatusCode::OK, done))
}
