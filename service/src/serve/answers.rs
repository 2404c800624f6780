//! Responses to connections that never got as far as a request, in the common error format.

use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse as _;

use crate::HttpError;
use crate::error::ErrorBody;

/// The last response on a connection.
#[derive(Clone, Copy)]
pub(super) struct LastAnswer {
    status: &'static str,
    headers: &'static str,
    error: &'static str,
}

/// 503: the process has reached its limit of connections.
pub(super) const FULL: LastAnswer = LastAnswer {
    status: "503 Service Unavailable",
    headers: "retry-after: 5\r\n",
    error: "too many connections are open; try again later",
};

/// 429: this address has reached its limit of connections.
pub(super) const SHARE_TAKEN: LastAnswer = LastAnswer {
    status: "429 Too Many Requests",
    headers: "retry-after: 5\r\n",
    error: "too many connections from this address; close some, or reuse them for several requests",
};

/// 408: a request head did not arrive in time.
pub(super) const HEAD_TOO_SLOW: LastAnswer = LastAnswer {
    status: "408 Request Timeout",
    headers: "",
    error: "the request's headers took too long; send them at once",
};

/// 400: not the head of an HTTP request.
pub(super) const NOT_HTTP: LastAnswer = LastAnswer {
    status: "400 Bad Request",
    headers: "",
    error: "this is not an HTTP/1.1 request",
};

/// 414: an address that is too long.
pub(super) const ADDRESS_TOO_LONG: LastAnswer = LastAnswer {
    status: "414 URI Too Long",
    headers: "",
    error: "the request's address is too long",
};

/// 431: a head that is too large.
pub(super) const HEAD_TOO_LARGE: LastAnswer = LastAnswer {
    status: "431 Request Header Fields Too Large",
    headers: "",
    error: "the request's headers are too large; send fewer or shorter ones",
};

impl LastAnswer {
    /// The bytes sent over the connection.
    pub(super) fn bytes(self) -> Vec<u8> {
        let body = ErrorBody { error: self.error };
        let body = serde_json::to_string(&body).unwrap_or_default();
        let Self {
            status, headers, ..
        } = self;
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             {headers}connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The same as a response to a request that was read.
    pub(super) fn response(self) -> Response<axum::body::Body> {
        let code = self.status.get(..3).and_then(|code| code.parse().ok());
        let status = code.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        HttpError::new(status, self.error)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("5"))
            .with_header(header::CONNECTION, HeaderValue::from_static("close"))
            .into_response()
    }

    /// The replacement for a response that the HTTP library wrote itself, without a body, to
    /// something it could not read.
    pub(super) fn instead_of(written: &[u8]) -> Option<Self> {
        let status = written.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let answer = match status {
            b"400" => NOT_HTTP,
            b"414" => ADDRESS_TOO_LONG,
            b"431" => HEAD_TOO_LARGE,
            _ => return None,
        };
        let bare = b"content-length: 0\r\n";
        let is_bare = written.windows(bare.len()).any(|part| part == bare);
        is_bare.then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_answer_is_whole() {
        let answer = String::from_utf8(FULL.bytes()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        assert!(head.contains("\r\nretry-after: 5\r\n"), "{head}");
        assert!(head.ends_with("\r\nconnection: close"), "{head}");
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"].is_string());
    }

    #[test]
    fn only_bare_answers_are_replaced() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
                     content-length: 0\r\n\r\n";
        assert!(LastAnswer::instead_of(bare).is_some());
        let ours = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 17\r\n\r\n{\"error\":\"wrong\"}";
        assert!(LastAnswer::instead_of(ours).is_none());
        assert!(LastAnswer::instead_of(b"HTTP/1.1 204 No Content\r\n\r\n").is_none());
    }
}
