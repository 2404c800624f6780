//! A real HTTP server for webhooks and HTTP steps that is sometimes slow and sometimes fails.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::definitions::NEVER_TAKEN;
use crate::world::text;
use hostile::Dice;

/// A request with this chance or more, in percent, is accepted sooner or later.
const TAKEN: usize = 8;
/// Longer than the timeout of an attempt.
const TOO_SLOW: Duration = Duration::from_millis(2_500);

/// A request that arrived in full.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// Its path: the webhook's, or that of HTTP steps.
    pub(crate) path: String,
    /// The delivery's id, or an HTTP step's `Idempotency-Key`.
    pub(crate) id: String,
    /// The position of the reported event, if there is one.
    pub(crate) position: String,
    /// The run that the reported event is of, if there is one.
    pub(crate) run: String,
    /// Whether it was answered 200 at once.
    pub(crate) taken: bool,
    /// When it arrived.
    pub(crate) at: Instant,
}

struct Shared {
    dice: Mutex<Dice>,
    arrived: Mutex<Vec<Arrived>>,
}

/// Listens until dropped.
pub(crate) struct Receiver {
    base: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(dice: Dice) -> Self {
        let shared = Arc::new(Shared {
            dice: Mutex::new(dice),
            arrived: Mutex::default(),
        });
        let router = Router::new().fallback(receive).with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving");
        });
        Self {
            base: format!("http://{addr}"),
            shared,
            server,
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        let arrived = self.shared.arrived.lock();
        arrived.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let (fate, delay) = {
        let mut dice = shared.dice.lock().unwrap_or_else(PoisonError::into_inner);
        (dice.below(100), dice.millis(0..300))
    };
    let fate = if uri.path().ends_with(NEVER_TAKEN) {
        fate % TAKEN
    } else {
        fate
    };
    let (status, delay) = match fate {
        0..6 => (StatusCode::INTERNAL_SERVER_ERROR, Duration::ZERO),
        6..TAKEN => (StatusCode::TOO_MANY_REQUESTS, Duration::ZERO),
        TAKEN => (StatusCode::OK, TOO_SLOW),
        9..20 => (StatusCode::OK, delay),
        _ => (StatusCode::OK, Duration::ZERO),
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let hook = uri.path().starts_with("/hook/");
    let arrived = Arrived {
        path: uri.path().to_owned(),
        id: header(if hook {
            "webhook-id"
        } else {
            "idempotency-key"
        }),
        position: text(&body["position"]),
        run: text(run_of(&body["data"])),
        taken: status == StatusCode::OK && delay < TOO_SLOW,
        at: Instant::now(),
    };
    let list = shared.arrived.lock();
    list.unwrap_or_else(PoisonError::into_inner).push(arrived);
    tokio::time::sleep(delay).await;
    status
}

/// What NOTIFY steps report names its run, too.
fn run_of(data: &Value) -> &Value {
    data.get("runId").unwrap_or(&data["run"])
}
