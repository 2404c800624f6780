//! Where a request of a page comes from.

use access::Staff;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use service::HttpError;

use crate::App;

/// Proof that a request was sent by one of our own pages: browsers say in `Origin` whose page has
/// sent a request, and no page can say otherwise. The session's cookie does not go along with what
/// other sites send, either; neither is relied on alone.
pub(super) struct OwnPage;

impl FromRequestParts<App> for OwnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, HttpError> {
        if is_own(&parts.headers) {
            Ok(Self)
        } else {
            let message = "cross-origin request refused: use the dashboard's own pages";
            Err(HttpError::forbidden(message))
        }
    }
}

/// A person of the staff, on one of our own pages.
pub(super) struct OnPage(pub(super) Staff);

impl FromRequestParts<App> for OnPage {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        OwnPage::from_request_parts(parts, app).await?;
        Staff::from_request_parts(parts, app).await.map(Self)
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

fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    match (origin, text(header::HOST)) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn own(given: &[(HeaderName, &'static str)]) -> bool {
        let pairs = given.iter().cloned();
        is_own(
            &pairs
                .map(|(name, value)| (name, HeaderValue::from_static(value)))
                .collect(),
        )
    }

    #[test]
    fn only_the_same_host_and_port_is_own() {
        let at = |origin, host| own(&[(header::ORIGIN, origin), (header::HOST, host)]);
        assert!(at("http://127.0.0.1:8080", "127.0.0.1:8080"));
        assert!(at("https://Waypost.example", "waypost.example"));
        assert!(!at("https://evil.example", "waypost.example"));
        assert!(!at("http://127.0.0.1:9090", "127.0.0.1:8080"));
        assert!(!at(
            "https://waypost.example.evil.example",
            "waypost.example"
        ));
        assert!(!at("null", "waypost.example"));
        assert!(!own(&[(header::HOST, "waypost.example")]));
        assert!(!own(&[]));
    }
}
