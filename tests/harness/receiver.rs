//! A real HTTP receiver for webhooks and HTTP steps.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout_at;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// When it arrived.
    pub at: Instant,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Bytes,
}

impl Received {
    /// A header's value, or the empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

type Reply = Box<dyn Fn(&Received) -> (StatusCode, HeaderMap, String) + Send + Sync>;

struct Inner {
    received: Mutex<Vec<Received>>,
    /// Notifies those waiting for requests of each one.
    arrived: Notify,
    reply: Mutex<(Reply, Duration)>,
}

/// Listens until dropped.
pub struct Receiver {
    addr: SocketAddr,
    inner: Arc<Inner>,
    server: tokio::task::JoinHandle<()>,
}

impl Receiver {
    /// Starts a receiver that answers 200 to everything.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// The same at another address of this machine.
    pub async fn start_at(addr: &str) -> Self {
        let reply: Reply = Box::new(|_| (StatusCode::OK, HeaderMap::new(), "{\"ok\":true}".into()));
        let inner = Arc::new(Inner {
            received: Mutex::default(),
            arrived: Notify::new(),
            reply: Mutex::new((reply, Duration::ZERO)),
        });
        let router = axum::Router::new()
            .fallback(receive)
            .with_state(inner.clone());
        let listener = tokio::net::TcpListener::bind(addr).await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving");
        });
        Self {
            addr,
            inner,
            server,
        }
    }

    /// The URL of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Answers with `reply` from now on.
    pub fn reply(
        &self,
        reply: impl Fn(&Received) -> (StatusCode, HeaderMap, String) + Send + Sync + 'static,
    ) {
        self.inner.reply.lock().expect("a lock").0 = Box::new(reply);
    }

    /// Answers with one status from now on.
    pub fn status(&self, status: u16) {
        let status = StatusCode::from_u16(status).expect("a status");
        self.reply(move |_| (status, HeaderMap::new(), String::new()));
    }

    /// Delays its responses by this time from now on.
    pub fn delay(&self, delay: Duration) {
        self.inner.reply.lock().expect("a lock").1 = delay;
    }

    /// All requests received so far.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().expect("a lock").clone()
    }

    /// Waits until `count` requests that `wanted` accepts have arrived, and returns them. Fails the
    /// test after 20 s without another one.
    pub async fn wait_for(
        &self,
        count: usize,
        wanted: impl Fn(&Received) -> bool,
    ) -> Vec<Received> {
        let (mut found, mut seen, mut end) = (Vec::new(), 0, Instant::now() + TIMEOUT);
        loop {
            // Notified of anything that arrives from here on.
            let more = self.inner.arrived.notified();
            let before = found.len();
            {
                let received = self.inner.received.lock().expect("a lock");
                found.extend(received[seen..].iter().filter(|r| wanted(r)).cloned());
                seen = received.len();
            }
            if found.len() >= count {
                return found;
            }
            if found.len() > before {
                end = Instant::now() + TIMEOUT;
            }
            let came = found.len();
            assert!(
                timeout_at(end.into(), more).await.is_ok(),
                "waited for {count} requests, {came} of {seen} were such; the last: {:#?}",
                self.received().pop()
            );
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn receive(
    State(inner): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, String) {
    let received = Received {
        at: Instant::now(),
        method,
        path: uri.to_string(),
        headers,
        body,
    };
    let (answer, delay) = {
        let reply = inner.reply.lock().expect("a lock");
        ((reply.0)(&received), reply.1)
    };
    inner.received.lock().expect("a lock").push(received);
    inner.arrived.notify_waiters();
    tokio::time::sleep(delay).await;
    answer
}
