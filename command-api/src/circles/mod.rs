//! Circles: creating, joining and leaving them, and the places they watch.

mod create;
mod directory;
mod invite;
mod join;
mod leave;
mod places;

use axum::Router;
use axum::routing::{delete, post};
use domain::circles::NotMember;
use schemas::{AggregateType, CircleId, OrgId, SYSTEM_ORG, StreamId};
use service::HttpError;

pub use directory::Directory;

use crate::{App, Refusal};

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/circles", post(create::create_circle))
        .route("/circles/join", post(join::join_circle))
        .route("/circles/{id}/invites", post(invite::invite_to_circle))
        .route("/circles/{id}/members/me", delete(leave::leave_circle))
        .route("/circles/{id}/places", post(places::add_place))
        .route(
            "/circles/{id}/places/{place_id}",
            delete(places::remove_place),
        )
}

/// Routes for an organization's own circles.
pub(crate) fn of_organizations() -> Router<App> {
    Router::new()
        .route("/api/v1/circles", post(create::create_circle_of_org))
        .route(
            "/api/v1/circles/{id}/invites",
            post(invite::invite_to_circle_of_org),
        )
}

impl Refusal for NotMember {
    fn into_http(self) -> HttpError {
        HttpError::not_found(self.to_string())
    }
}

fn stream(org: &OrgId, id: &CircleId) -> StreamId {
    StreamId::new(org, AggregateType::Circle, id.as_str())
}

/// The part of the log with persons' circles.
fn nobodys() -> OrgId {
    OrgId::from(SYSTEM_ORG)
}
