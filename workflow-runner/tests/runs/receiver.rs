//! A real HTTP server that records its requests and answers as configured.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) after: Duration,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            after: Duration::ZERO,
        }
    }

    pub(crate) fn json(body: &serde_json::Value) -> Self {
        let mut answer = Self::status(200).with("content-type", "application/json");
        answer.body = body.to_string();
        answer
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn text(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }
}

#[derive(Clone, Default)]
struct Desk {
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    usual: Arc<Mutex<Option<Answer>>>,
}

pub(crate) struct Receiver {
    address: String,
    desk: Desk,
    _serving: AbortOnDropHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let desk = Desk::default();
        let router = Router::new().fallback(take).with_state(desk.clone());
        let serving: JoinHandle<()> = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            desk,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Gives this response once, after those set before.
    pub(crate) fn then(&self, answer: Answer) {
        self.desk.answers.lock().unwrap().push_back(answer);
    }

    /// Gives this response whenever no other one is set.
    pub(crate) fn usually(&self, answer: Answer) {
        *self.desk.usual.lock().unwrap() = Some(answer);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.desk.received.lock().unwrap().clone()
    }

    pub(crate) async fn wait_for(&self, count: usize) {
        let came = async {
            while self.received().len() < count {
                tokio::time::sleep(crate::world::LOOK).await;
            }
        };
        let came = tokio::time::timeout(crate::world::TIMEOUT, came).await;
        came.expect("the call does not come");
    }
}

async fn take(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 10_000_000).await.unwrap();
    desk.received.lock().unwrap().push(Received {
        path: parts.uri.to_string(),
        headers: parts.headers,
        body,
    });
    let told = desk.answers.lock().unwrap().pop_front();
    let usual = || desk.usual.lock().unwrap().clone();
    let answer = told.or_else(usual).unwrap_or_else(|| Answer::status(204));
    tokio::time::sleep(answer.after).await;
    let status = StatusCode::from_u16(answer.status).unwrap();
    let mut response = (status, answer.body).into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
