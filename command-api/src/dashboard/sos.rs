//! `POST /dashboard/sos/{id}/acknowledge`, `POST /dashboard/sos/{id}/resolve`: answers a call for help
//! on the organization's map.

use axum::extract::{Path, State};
use axum::response::Response;
use domain::sos::Reply;
use schemas::SosId;
use service::HttpError;

use super::origin::UncountedOnPage;
use crate::sos::answer_as_staff;
use crate::{App, Origin};

pub(super) async fn acknowledge_sos(
    UncountedOnPage(staff): UncountedOnPage,
    State(app): State<App>,
    Path(id): Path<SosId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    answer_as_staff(&app, &origin, id, &staff, Reply::Acknowledge).await
}

pub(super) async fn resolve_sos(
    UncountedOnPage(staff): UncountedOnPage,
    State(app): State<App>,
    Path(id): Path<SosId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    answer_as_staff(&app, &origin, id, &staff, Reply::Resolve).await
}
