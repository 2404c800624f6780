//! `If-Match` and `If-None-Match`: preconditions of a change that a concurrent one would make
//! wrong.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use domain::{Precondition, Revision, Unmet};
use service::HttpError;

use crate::Refusal;

/// The precondition of a request's change.
pub(crate) struct Expecting(pub(crate) Precondition);

impl<S: Send + Sync> FromRequestParts<S> for Expecting {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let seen = list(&parts.headers, &IF_MATCH)?;
        let other = list(&parts.headers, &IF_NONE_MATCH)?;
        Ok(Self(match (seen.as_deref(), other.as_deref()) {
            (None, None) => Precondition::None,
            (None, Some("*")) => Precondition::Absent,
            (Some("*"), None) => Precondition::Present,
            (Some(tags), None) => Precondition::Seen(read(tags)?),
            (None, Some(_)) => {
                return Err(HttpError::bad_request(
                    "If-None-Match: must be *, to create what does not exist yet",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(HttpError::bad_request(
                    "If-None-Match: cannot be sent together with If-Match; send one of them",
                ));
            }
        }))
    }
}

/// A header's values joined; they may come as several lines.
fn list(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, HttpError> {
    let mut values = Vec::new();
    for value in headers.get_all(name) {
        let text = value.to_str().map_err(|_| malformed())?;
        values.push(text.trim());
    }
    Ok((!values.is_empty()).then(|| values.join(",")))
}

fn read(tags: &str) -> Result<Vec<Revision>, HttpError> {
    let tags = tags.split(',').map(str::trim);
    let revision = |tag: &str| {
        // A proxy that compresses a response weakens its tag, which still names the same state.
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        let text = tag.strip_prefix('"')?.strip_suffix('"')?;
        (!text.contains('"')).then(|| Revision::named(text))
    };
    let tags: Option<Vec<_>> = tags.map(revision).collect();
    tags.ok_or_else(malformed)
}

fn malformed() -> HttpError {
    HttpError::bad_request(
        "If-Match: must be an ETag as a read answers it, in its quotation marks, or *",
    )
}

impl Refusal for Unmet {
    fn into_http(self) -> HttpError {
        HttpError::new(StatusCode::PRECONDITION_FAILED, self.to_string())
    }
}

/// Adds the `ETag` of the current state to a response.
pub(crate) fn tagged(answer: Response, revision: &Revision) -> Response {
    ([(ETAG, revision.etag())], answer).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn expecting(headers: &[(&str, &str)]) -> Result<Precondition, HttpError> {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let read = Expecting::from_request_parts(&mut parts, &()).await;
        read.map(|Expecting(precondition)| precondition)
    }

    #[tokio::test]
    async fn tags_are_read_as_they_were_answered() {
        let seen = |tags: &[&str]| {
            Precondition::Seen(tags.iter().map(|tag| Revision::named(tag)).collect())
        };
        for (headers, expected) in [
            (&[][..], Precondition::None),
            (&[("if-match", "\"3\"")], seen(&["3"])),
            (&[("if-match", " W/\"3\" , \"4\"")], seen(&["3", "4"])),
            (
                &[("if-match", "\"3\""), ("if-match", "\"4\"")],
                seen(&["3", "4"]),
            ),
            (&[("if-match", "*")], Precondition::Present),
            (&[("if-none-match", "*")], Precondition::Absent),
        ] {
            assert_eq!(expecting(headers).await.unwrap(), expected, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_tag_is_refused_by_name() {
        for (headers, name) in [
            (&[("if-match", "3")][..], "If-Match"),
            (&[("if-match", "")], "If-Match"),
            (&[("if-match", "*, \"3\"")], "If-Match"),
            (&[("if-match", "\"3")], "If-Match"),
            (&[("if-none-match", "\"3\"")], "If-None-Match"),
            (
                &[("if-match", "*"), ("if-none-match", "*")],
                "If-None-Match",
            ),
        ] {
            let refused = expecting(headers).await.unwrap_err();
            assert_eq!(refused.status, 400);
            assert!(
                refused.message.starts_with(&format!("{name}: ")),
                "{headers:?}"
            );
        }
    }
}
