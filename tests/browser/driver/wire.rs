//! The browser's own protocol: commands with their responses, and events, as JSON over a socket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};

/// How long any command may take, on a machine that builds at the same time.
const TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Shared {
    waiting: HashMap<u64, oneshot::Sender<Value>>,
    events: Vec<Event>,
    is_over: bool,
}

/// An event on a page.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) session: String,
    pub(super) method: String,
    pub(super) params: Value,
}

/// A test's own connection. What it has created in the browser ends with it.
pub(super) struct Wire {
    next: AtomicU64,
    out: mpsc::UnboundedSender<Message>,
    shared: Arc<Mutex<Shared>>,
}

impl Wire {
    pub(super) async fn connect(address: &str) -> Self {
        let host = address
            .strip_prefix("ws://")
            .and_then(|rest| rest.split('/').next());
        let tcp = TcpStream::connect(host.expect("an address"))
            .await
            .expect("the browser");
        // A screenshot of a page arrives as one message.
        let bounds = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let socket = client_async_with_config(address, tcp, Some(bounds)).await;
        let (mut sink, mut stream) = socket.expect("a socket").0.split();
        let (out, mut to_send) = mpsc::unbounded_channel();
        let shared = Arc::new(Mutex::new(Shared::default()));
        tokio::spawn(async move {
            while let Some(message) = to_send.recv().await {
                if sink.send(message).await.is_err() {
                    return;
                }
            }
        });
        let taking = shared.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                if let Message::Text(text) = message {
                    take(&taking, &text);
                }
            }
            let mut shared = lock(&taking);
            shared.is_over = true;
            shared.waiting.clear();
        });
        let next = AtomicU64::new(1);
        Self { next, out, shared }
    }

    /// Sends a command to a page, or to the browser itself if `session` is empty.
    pub(super) async fn call(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"id": id, "method": method, "params": params});
        if !session.is_empty() {
            message["sessionId"] = json!(session);
        }
        let (answered, answer) = oneshot::channel();
        {
            let mut shared = lock(&self.shared);
            assert!(!shared.is_over, "the browser has ended");
            shared.waiting.insert(id, answered);
        }
        let _ = self.out.send(Message::text(message.to_string()));
        let answer = tokio::time::timeout(TIMEOUT, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} took longer than {TIMEOUT:?}"));
        let mut answer = answer.map_err(|_| format!("{method}: the browser has ended"))?;
        match answer["error"]["message"].as_str() {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }

    /// The events on a page since the last call.
    pub(super) fn take_events(&self, session: &str) -> Vec<Event> {
        let events = &mut lock(&self.shared).events;
        events
            .extract_if(.., |event| event.session == session)
            .collect()
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(shared: &Mutex<Shared>, text: &str) {
    let mut message: Value = serde_json::from_str(text).expect("JSON");
    let mut shared = lock(shared);
    if let Some(id) = message["id"].as_u64() {
        if let Some(waiting) = shared.waiting.remove(&id) {
            let _ = waiting.send(message);
        }
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event = Event {
        session: text(&message["sessionId"]),
        method: text(&message["method"]),
        params: message["params"].take(),
    };
    shared.events.push(event);
}
