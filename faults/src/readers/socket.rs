//! A subscriber of `/ws` that resumes where it was whenever its connection ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::world::text;
use hostile::Dice;

/// Silence after which the subscriber reconnects: the server pings more often.
const TIMEOUT: Duration = Duration::from_secs(8);

/// A message received on a subscription.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// An event at a position, and when it arrived.
    Event {
        position: String,
        kind: String,
        at: Instant,
    },
    /// Positions between two places were left out in favour of newer ones.
    Conflated { from: String, to: String },
    /// The subscription was restarted from scratch.
    Reset,
}

/// One subscription over all of its connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// Its owner, for reports.
    pub(crate) who: String,
    pub(crate) channel: String,
    /// The position where it started.
    pub(crate) from: String,
    pub(crate) seen: Vec<Seen>,
    pub(crate) connections: u64,
}

/// Subscribes and stays subscribed until dropped, using the token currently in force.
pub(crate) fn listen(
    base: &str,
    token: impl Fn() -> String + Send + 'static,
    channel: &str,
    who: &str,
    mut dice: Dice,
) -> (Arc<Mutex<Heard>>, JoinHandle<()>) {
    let heard = Arc::new(Mutex::new(Heard {
        who: who.to_owned(),
        channel: channel.to_owned(),
        ..Heard::default()
    }));
    let url = base.replacen("http", "ws", 1) + "/ws";
    let (channel, mine) = (channel.to_owned(), heard.clone());
    let task = tokio::spawn(async move {
        loop {
            // However it ended, the next connection resumes from the last position.
            let _ = connection(&url, &token(), &channel, &mine, &mut dice).await;
            tokio::time::sleep(dice.millis(10..300)).await;
        }
    });
    (heard, task)
}

fn with<T>(heard: &Mutex<Heard>, change: impl FnOnce(&mut Heard) -> T) -> T {
    change(&mut heard.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The last position up to which everything is known.
fn place(heard: &Heard) -> Option<String> {
    let seen = heard.seen.iter().rev().find_map(|seen| match seen {
        Seen::Event { position, .. } => Some(position.clone()),
        Seen::Conflated { .. } | Seen::Reset => None,
    });
    seen.or_else(|| (!heard.from.is_empty()).then(|| heard.from.clone()))
}

/// Runs one connection to its end; occasionally the client itself hangs up.
async fn connection(
    url: &str,
    token: &str,
    channel: &str,
    heard: &Mutex<Heard>,
    dice: &mut Dice,
) -> Option<()> {
    let (mut socket, _) = timeout(TIMEOUT, connect_async(url)).await.ok()?.ok()?;
    let auth = json!({"type": "auth", "token": token});
    socket.send(Message::text(auth.to_string())).await.ok()?;
    let mut subscribe = json!({"type": "subscribe", "id": "s", "channel": channel});
    if let Some(after) = with(heard, |heard| place(heard)) {
        subscribe["after"] = after.into();
    }
    socket
        .send(Message::text(subscribe.to_string()))
        .await
        .ok()?;
    with(heard, |heard| heard.connections += 1);
    let mut left = 200 + dice.below(5_000);
    while left > 0 {
        let message = timeout(TIMEOUT, socket.next()).await.ok()??.ok()?;
        let Message::Text(frame) = message else {
            continue;
        };
        let frame: Value = serde_json::from_str(&frame).ok()?;
        left -= 1;
        with(heard, |heard| take(heard, &frame));
    }
    Some(())
}

fn take(heard: &mut Heard, frame: &Value) {
    match frame["type"].as_str().unwrap_or_default() {
        "subscribed" if heard.from.is_empty() => heard.from = text(&frame["position"]),
        "event" => heard.seen.push(Seen::Event {
            position: text(&frame["position"]),
            kind: text(&frame["event"]["type"]),
            at: Instant::now(),
        }),
        "conflated" => heard.seen.push(Seen::Conflated {
            from: text(&frame["from"]),
            to: text(&frame["to"]),
        }),
        "reset" => heard.seen.push(Seen::Reset),
        _ => {}
    }
}
