//! Calls for help.

mod answer;
mod trigger;

use axum::Router;
use axum::routing::post;
use schemas::{AggregateType, OrgId, SYSTEM_ORG, SosId, StreamId};

use crate::App;

pub(crate) use self::answer::answer_as_staff;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/sos/trigger", post(trigger::trigger_sos))
        .route("/sos/{id}/acknowledge", post(answer::acknowledge_sos))
        .route("/sos/{id}/resolve", post(answer::resolve_sos))
}

/// The stream of a call in persons' own part of the log, which has every call.
fn own(id: &SosId) -> StreamId {
    of_org(&OrgId::from(SYSTEM_ORG), id)
}

/// The stream in an organization's part, which also has the calls of its circles' members.
fn of_org(org: &OrgId, id: &SosId) -> StreamId {
    StreamId::new(org, AggregateType::Sos, id.as_str())
}
