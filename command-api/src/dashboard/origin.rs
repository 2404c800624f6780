//! The origin of a page's request.

use access::{Operator, Staff, is_own_page};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use service::{HttpError, RequestContext};

use crate::App;

/// Proof that a request was sent by one of our own pages ([`is_own_page`]).
pub(super) struct OwnPage;

impl FromRequestParts<App> for OwnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, HttpError> {
        if is_own_page(&parts.headers) {
            Ok(Self)
        } else {
            let message = "cross-origin request refused: use the dashboard's own pages";
            Err(HttpError::forbidden(message))
        }
    }
}

/// A staff member, on one of our own pages. The request counts against the same limit as those that
/// the person sends to the key APIs from the organization's pages.
///
/// It is the first argument of its handler, so that a request which fails later is counted too.
pub(super) struct OnPage(pub(super) Staff);

impl FromRequestParts<App> for OnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let UncountedOnPage(staff) = UncountedOnPage::from_request_parts(parts, app).await?;
        count(&staff, parts, app).await?;
        Ok(Self(staff))
    }
}

/// A staff member, on one of our own pages. The request is not counted: it answers a call for help,
/// or ends the session.
pub(super) struct UncountedOnPage(pub(super) Staff);

impl FromRequestParts<App> for UncountedOnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        OwnPage::from_request_parts(parts, app).await?;
        Staff::from_request_parts(parts, app).await.map(Self)
    }
}

async fn count(staff: &Staff, parts: &mut Parts, app: &App) -> Result<(), HttpError> {
    let Ok(request) = RequestContext::from_request_parts(parts, app).await;
    app.access.count_on_pages(staff, &request).await
}

/// An operator of the installation, on one of our own pages; counted as [`OnPage`].
pub(super) struct OperatorOnPage(pub(super) Operator);

impl FromRequestParts<App> for OperatorOnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        OwnPage::from_request_parts(parts, app).await?;
        let operator = <Operator as FromRequestParts<App>>::from_request_parts(parts, app);
        let operator = operator.await?;
        count(operator.staff(), parts, app).await?;
        Ok(Self(operator))
    }
}

/// The address at which the browser reaches Waypost: scheme, host and port.
pub(super) struct PageAddress(pub(super) String);

impl FromRequestParts<App> for PageAddress {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        OwnPage::from_request_parts(parts, app).await?;
        let origin = parts.headers.get(header::ORIGIN);
        let origin = origin.and_then(|origin| origin.to_str().ok());
        Ok(Self(origin.unwrap_or_default().to_owned()))
    }
}
