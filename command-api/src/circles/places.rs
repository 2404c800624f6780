//! `POST /circles/{id}/places`, `DELETE /circles/{id}/places/{placeId}`: starts or stops watching a
//! place.

use access::AccountToken;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::circles::{self, Circle, PlaceRequest};
use event_log::Binding;
use schemas::{AccountId, CircleId, PlaceId};
use serde::Serialize;
use service::HttpError;

use super::stream;
use crate::body::JsonBody;
use crate::bounds::NotAdded;
use crate::commands::{Decision, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, NotFound, Origin, answer};

#[derive(Clone, Debug, Serialize)]
struct NewPlace {
    id: PlaceId,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
}

async fn add(
    app: &App,
    origin: &Origin,
    circle_id: &CircleId,
    by: AccountId,
    request: PlaceRequest,
) -> Result<Done<NewPlace>, CommandError<NotAdded>> {
    let commands = &app.commands;
    let id = PlaceId::from(commands.random.id());
    let personal = request.personal().to_string();
    let vault = commands.log().vault();
    let place = vault
        .seal(&Binding::WatchedPlace(by, id.clone()), &personal)
        .await?;
    let stream = stream(&app.circles.org_of(circle_id), circle_id);
    let bounds = app.bounds.of_circle();
    let added = commands.execute_once(origin, &stream, Past::Whole, id.as_str(), |past, _| {
        let circle = Circle::fold(past);
        let event = circles::add_place(circle.as_ref(), by, id.clone(), place.clone())?;
        bounds.one_more_place(circle.as_ref())?;
        Ok(Decision::new(id.clone(), Some(event)))
    });
    let place = |id| NewPlace {
        id,
        name: request.name,
        lat: request.lat,
        lng: request.lng,
        radius_m: request.radius_m,
    };
    Ok(added.await?.answered(PlaceId::new).map(place))
}

pub(super) async fn add_place(
    caller: AccountToken,
    State(app): State<App>,
    Path(id): Path<CircleId>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(PlaceRequest::parse)?;
    let origin = repeatable.by_person(&caller, &body);
    let done = add(&app, &origin, &id, caller.account_id, request).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}

/// Why no place is removed: a caller who is not a member gets the same answer as if there is none.
fn no_place<E>(_: E) -> NotFound {
    NotFound("place")
}

pub(super) async fn remove_place(
    caller: AccountToken,
    State(app): State<App>,
    Path((id, place_id)): Path<(CircleId, PlaceId)>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let stream = stream(&app.circles.org_of(&id), &id);
    let removed = app
        .commands
        .execute(&origin, &stream, Past::Whole, |past, _| {
            let circle = Circle::fold(past);
            let event = circles::remove_place(circle.as_ref(), caller.account_id, &place_id);
            let event = event.map_err(no_place)?.ok_or_else(|| no_place(()))?;
            Ok(Decision::new((), Some(event)))
        });
    let removed: Result<Done<()>, CommandError<NotFound>> = removed.await;
    Ok(answer::no_content(&removed?))
}
