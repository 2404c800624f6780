//! `POST /dashboard/sign-in`, `POST /dashboard/sign-out`: the session of a person of the staff.

use access::{SESSION_COOKIE, not_staff};
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::account::SignIn;
use service::{HttpError, RequestContext};

use super::origin::{OnPage, OwnPage};
use crate::accounts::{ClientAddress, NOT_KEPT, end_token, session_for};
use crate::{App, Origin, body};

pub(super) async fn sign_in(
    _: OwnPage,
    State(app): State<App>,
    address: ClientAddress,
    request: Request,
) -> Result<Response, HttpError> {
    let secure = came_by_https(request.headers());
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let sign_in = body::read_as(&bytes, SignIn::parse)?;
    let session = session_for(&app, address, sign_in).await?;
    if app.access.organizations_of(session.account()).is_empty() {
        return Err(not_staff());
    }
    let cookie = cookie(&session.access_token, session.expires_in, secure);
    Ok((StatusCode::NO_CONTENT, NOT_KEPT, [(SET_COOKIE, cookie)]).into_response())
}

pub(super) async fn sign_out(
    OnPage(staff): OnPage,
    State(app): State<App>,
    context: RequestContext,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    end_token(&app, &Origin::of(&context), &staff.person).await?;
    let cookie = cookie("", 0, came_by_https(&headers));
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Scripts cannot read it, other sites cannot make use of it, and it is sent to the pages alone.
fn cookie(token: &str, seconds: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!(
        "{SESSION_COOKIE}={token}; Path=/dashboard; Max-Age={seconds}; HttpOnly; \
         SameSite=Strict{secure}"
    )
}

/// What a proxy says of the browser's side. Whoever forges it hurts nobody but themselves.
fn came_by_https(headers: &HeaderMap) -> bool {
    headers
        .get("x-forwarded-proto")
        .is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
}
