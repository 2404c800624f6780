//! An HTTP client with one API key, or with none.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// A client of one address.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Client {
    /// Creates a client that sends no key.
    pub fn new(base: &str) -> Self {
        // A second provider is not an error: every test of the process installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_mins(2))
            // A connection that was opened in advance is closed after WAYPOST_SILENT_SECONDS.
            .pool_idle_timeout(Duration::from_secs(50))
            .build()
            .expect("an HTTP client");
        Self {
            http,
            base: base.to_owned(),
            key: None,
        }
    }

    /// The same client with a key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// The same client at another instance's address.
    #[must_use]
    pub fn at(&self, other: &Self) -> Self {
        Self {
            base: other.base.clone(),
            ..self.clone()
        }
    }

    /// The address it connects to.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Begins a request for the test to complete.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// GET that waits until reads include everything up to a position.
    pub async fn get_at(&self, path: &str, position: &str) -> Answer {
        let request = self.request(Method::GET, path);
        Answer::to(request.header("waypost-min-position", position)).await
    }

    /// POST without a body.
    pub async fn post_nothing(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::POST, path)).await
    }

    /// POST of bytes of a type.
    pub async fn post_bytes(&self, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
        let request = self.request(Method::POST, path);
        Answer::to(request.header("content-type", kind).body(body.into())).await
    }

    /// POST of JSON under an `Idempotency-Key`.
    pub async fn post_once(&self, path: &str, idempotency_key: &str, body: &Value) -> Answer {
        let request = json(self.request(Method::POST, path), body);
        Answer::to(request.header("idempotency-key", idempotency_key)).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(json(self.request(Method::POST, path), body)).await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        Answer::to(json(self.request(Method::PUT, path), body)).await
    }

    /// PATCH of JSON.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        Answer::to(json(self.request(Method::PATCH, path), body)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::DELETE, path)).await
    }
}

fn json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

impl Answer {
    /// Sends a request that must be answered.
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        Self::or_error(request).await.expect("an answer")
    }

    /// Sends a request whose connection may fail.
    pub async fn or_error(request: reqwest::RequestBuilder) -> Result<Self, reqwest::Error> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Self {
            status,
            headers,
            body: response.bytes().await?.to_vec(),
        })
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| {
            panic!(
                "{} is no JSON: {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            )
        })
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The path of the next page, if there is one.
    #[track_caller]
    pub fn next(&self) -> Option<String> {
        let link = self.header("link")?;
        Some(next_page(link).expect("a link to the next page"))
    }

    /// The position at which reads see the command's effect.
    #[track_caller]
    pub fn position(&self) -> String {
        let position = self.header("waypost-position").expect("Waypost-Position");
        assert!(!position.is_empty(), "an empty position");
        position.to_owned()
    }

    /// Asserts an error's status and shape and returns its message.
    #[track_caller]
    pub fn error(&self, status: u16) -> String {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        let body = self.json();
        let fields = body.as_object().expect("an object");
        assert_eq!(fields.len(), 1, "an error has one field: {body}");
        fields["error"].as_str().expect("a message").to_owned()
    }

    /// Asserts a status and returns the JSON body.
    #[track_caller]
    pub fn ok(&self, status: u16) -> Value {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        if self.body.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }
}

/// Extracts the path of the next page from a `Link` header's value.
pub fn next_page(link: &str) -> Option<String> {
    let next = link.strip_prefix('<')?;
    Some(next.strip_suffix(">; rel=\"next\"")?.to_owned())
}
