//! The frames of `/ws`, in both directions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest id that a client may give a subscription.
const MAX_ID_BYTES: usize = 64;

/// A request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Identifies the client, at the start and whenever its token is renewed.
    Auth { token: String },
    /// Requests a channel's events under the name `id`, from `after` on or from now.
    Subscribe {
        id: String,
        channel: String,
        after: Option<String>,
    },
    /// Ends a subscription.
    Unsubscribe { id: String },
}

/// A malformed frame, reported to the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The subscription it was about, if that much could be read.
    pub(super) id: Option<String>,
    /// What is wrong with it.
    pub(super) error: String,
}

impl Malformed {
    /// Says what is wrong, and with which subscription.
    pub(super) fn new(id: Option<String>, error: impl Into<String>) -> Self {
        let error = error.into();
        Self { id, error }
    }

    /// There are no binary frames.
    pub(super) fn binary() -> Self {
        Self::new(None, "frames must be text")
    }
}

#[derive(Deserialize)]
struct Fields {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    token: Option<String>,
    channel: Option<String>,
    after: Option<String>,
}

impl Request {
    /// Reads a text frame.
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        let fields: Fields = serde_json::from_str(text)
            .map_err(|error| Malformed::new(None, format!("invalid frame: {error}")))?;
        let id = fields.id;
        let wrong = |error: &str| Malformed::new(id.clone(), error);
        let named = || match id.as_deref() {
            Some(text) if (1..=MAX_ID_BYTES).contains(&text.len()) => Ok(text.to_owned()),
            Some(_) => Err(Malformed::new(
                None,
                format!("`id` must have 1 to {MAX_ID_BYTES} bytes"),
            )),
            None => Err(wrong("`id` is missing")),
        };
        match fields.kind.as_deref() {
            Some("auth") => Ok(Self::Auth {
                token: fields.token.ok_or_else(|| wrong("`token` is missing"))?,
            }),
            Some("subscribe") => Ok(Self::Subscribe {
                id: named()?,
                channel: fields
                    .channel
                    .ok_or_else(|| wrong("`channel` is missing"))?,
                after: fields.after,
            }),
            Some("unsubscribe") => Ok(Self::Unsubscribe { id: named()? }),
            Some(_) => Err(wrong("`type` must be `auth`, `subscribe` or `unsubscribe`")),
            None => Err(wrong("`type` is missing")),
        }
    }
}

/// Server frames other than events, which are put together in
/// [`LiveEvent`](super::ring::LiveEvent).
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Reply<'a> {
    /// The client is known and may subscribe.
    Ready,
    /// Events after this position follow.
    Subscribed { id: &'a str, position: &'a str },
    /// The latest state of the channel, if no `after` was given.
    Snapshot { id: &'a str, data: &'a [Value] },
    /// The client's position is too old to continue from: positions have expired, or the log was
    /// restored from a copy.
    Reset { id: &'a str },
    /// Of the positions after `from` and up to `to`, only the newest of each person follow.
    Conflated {
        id: &'a str,
        from: &'a str,
        to: &'a str,
    },
    /// Something is wrong; the connection continues unless it is closed.
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        error: &'a str,
    },
}

impl Reply<'_> {
    /// The frame's text.
    pub(super) fn to_text(&self) -> String {
        // Text and empty lists always serialize; an empty frame would be seen by every test.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Malformed {
        Request::parse(text).unwrap_err()
    }

    #[test]
    fn every_request_is_read() {
        assert_eq!(
            Request::parse(r#"{"type":"auth","token":"wp_x"}"#).unwrap(),
            Request::Auth {
                token: "wp_x".to_owned()
            }
        );
        assert_eq!(
            Request::parse(r#"{"type":"subscribe","id":"s1","channel":"runs","after":null}"#)
                .unwrap(),
            Request::Subscribe {
                id: "s1".to_owned(),
                channel: "runs".to_owned(),
                after: None
            }
        );
        assert_eq!(
            Request::parse(r#"{"type":"unsubscribe","id":"s1"}"#).unwrap(),
            Request::Unsubscribe {
                id: "s1".to_owned()
            }
        );
    }

    #[test]
    fn what_is_missing_is_named_beside_the_subscription() {
        let error = refused(r#"{"type":"subscribe","id":"s1"}"#);
        assert_eq!(error.id.as_deref(), Some("s1"));
        assert!(error.error.contains("channel"), "{}", error.error);
        assert!(refused(r#"{"id":"s1"}"#).error.contains("type"));
        assert!(refused(r#"{"type":"auth"}"#).error.contains("token"));
        assert!(
            refused(r#"{"type":"subscribe","channel":"runs"}"#)
                .error
                .contains("id")
        );
        assert!(refused(r#"{"type":"dance"}"#).error.contains("type"));
        for text in ["", "[]", "{", "7", r#"{"type":7}"#] {
            assert!(refused(text).error.contains("invalid frame"), "{text}");
        }
    }

    #[test]
    fn an_id_has_bounds() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        for id in ["", long.as_str()] {
            let text = format!(r#"{{"type":"unsubscribe","id":"{id}"}}"#);
            assert!(refused(&text).error.contains("64"), "{id}");
        }
    }

    #[test]
    fn replies_have_their_published_form() {
        assert_eq!(Reply::Ready.to_text(), r#"{"type":"ready"}"#);
        assert_eq!(
            Reply::Subscribed {
                id: "s1",
                position: "e1-9"
            }
            .to_text(),
            r#"{"type":"subscribed","id":"s1","position":"e1-9"}"#
        );
        assert_eq!(
            Reply::Snapshot {
                id: "s1",
                data: &[]
            }
            .to_text(),
            r#"{"type":"snapshot","id":"s1","data":[]}"#
        );
        assert_eq!(
            Reply::Error {
                id: None,
                error: "no"
            }
            .to_text(),
            r#"{"type":"error","error":"no"}"#
        );
    }
}
