//! `POST /dashboard/sign-in`, `POST /dashboard/sign-out`: the session of a staff member.

use access::{SESSION_COOKIE, not_staff};
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::account::SignIn;
use service::HttpError;

use super::origin::{OwnPage, UncountedOnPage};
use crate::accounts::{ClientAddress, NOT_KEPT, end_token, session_for};
use crate::body::SmallBody;
use crate::{App, Origin};

pub(super) async fn sign_in(
    _: OwnPage,
    State(app): State<App>,
    address: ClientAddress,
    headers: HeaderMap,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let session = session_for(&app, address, body.read(SignIn::parse)?).await?;
    if app.access.organizations_of(session.account()).is_empty() {
        return Err(not_staff());
    }
    let secure = came_by_https(&headers);
    let cookie = cookie(&session.access_token, session.expires_in, secure);
    Ok((StatusCode::NO_CONTENT, NOT_KEPT, [(SET_COOKIE, cookie)]).into_response())
}

pub(super) async fn sign_out(
    UncountedOnPage(staff): UncountedOnPage,
    State(app): State<App>,
    origin: Origin,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    end_token(&app, &origin, &staff.person).await?;
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

/// The browser's scheme as reported by the first proxy. Trusted from any client: one that forges it
/// gets a cookie that goes nowhere else, and a proxy that is not configured yet does no harm by it.
fn came_by_https(headers: &HeaderMap) -> bool {
    let scheme = headers.get("x-forwarded-proto");
    let first = scheme.and_then(|scheme| scheme.as_bytes().split(|byte| *byte == b',').next());
    first.is_some_and(|first| first.trim_ascii().eq_ignore_ascii_case(b"https"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_cookie_goes_over_tls_alone_where_the_browser_came_so() {
        let came = |scheme: &'static str| {
            let scheme = HeaderValue::from_static(scheme);
            came_by_https(&HeaderMap::from_iter([(
                "x-forwarded-proto".parse().unwrap(),
                scheme,
            )]))
        };
        assert!(came("https") && came("HTTPS") && came("https, http"));
        assert!(!came("http") && !came("http, https") && !came(""));
        assert!(!came_by_https(&HeaderMap::new()));
        assert!(cookie("t", 1, true).ends_with("; Secure"));
        assert!(!cookie("t", 1, false).contains("Secure"));
    }
}
