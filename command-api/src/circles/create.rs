//! `POST /circles`, `POST /api/v1/circles`: creates a circle.

use access::{AccountToken, Authorized, scope};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::circles::{self, NameRequest};
use event_log::Binding;
use schemas::CircleId;
use schemas::circle::CircleOwner;
use serde::Serialize;
use service::HttpError;

use super::{nobodys, stream};
use crate::body::JsonBody;
use crate::bounds::{TooMany, one_more};
use crate::commands::{Decision, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, Origin, answer};

/// A newly created circle.
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
) -> Result<Done<NewCircle>, CommandError<TooMany>> {
    let commands = &app.commands;
    let org = match &owner {
        CircleOwner::Account(_) => nobodys(),
        CircleOwner::Organization(org) => org.clone(),
    };
    let id = CircleId::from(commands.random.id());
    let binding = Binding::CircleName(owner.clone(), id.clone());
    let name = commands.log().vault().seal(&binding, &request.name).await?;
    let stream = stream(&org, &id);
    let made = commands.execute_once(origin, &stream, Past::Last, id.as_str(), |_, _| {
        has_room(app, &owner)?;
        Ok(Decision {
            answer: id.clone(),
            events: circles::create(id.clone(), owner.clone(), name.clone()),
        })
    });
    let made = app.circles.learned(origin, made.await?).await;
    let name = request.name;
    Ok(made
        .answered(CircleId::new)
        .map(|id| NewCircle { id, name }))
}

/// Checks whether an owner may have one more circle.
fn has_room(app: &App, owner: &CircleOwner) -> Result<(), TooMany> {
    let made = app.circles.look(|circles| circles.made_by(owner));
    match owner {
        CircleOwner::Account(_) => one_more(
            made,
            app.bounds.circles_per_person,
            TooMany::CirclesOfPerson,
        ),
        CircleOwner::Organization(_) => {
            one_more(made, app.bounds.circles_per_organization, TooMany::Circles)
        }
    }
}

pub(super) async fn create_circle(
    caller: AccountToken,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(NameRequest::parse)?;
    let origin = repeatable.by_person(&caller, &body);
    let owner = CircleOwner::Account(caller.account_id);
    let done = create(&app, &origin, owner, request).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}

pub(super) async fn create_circle_of_org(
    caller: Authorized<scope::ManageCircles>,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(NameRequest::parse)?;
    let origin = repeatable.by_key(&caller, &body);
    let owner = CircleOwner::Organization(caller.org.clone());
    let done = create(&app, &origin, owner, request).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}
