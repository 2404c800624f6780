//! A key that is still used after its revocation: with an upload and a feed in progress, and with
//! new requests.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use crate::Here;
use crate::neighbours::A_WHILE;
use crate::uploads::{self, LEADS};
use crate::wire::{is_success, send};

/// How long a revoked key may still work.
const ALLOWED: Duration = Duration::from_secs(1);
/// Interval between two lines, and between two requests.
const OFTEN: Duration = Duration::from_millis(300);
/// Attempts to create a key, to use it for the first time and to revoke it.
const TRIES: usize = 10;
/// Number of requests once it is revoked.
const REQUESTS: usize = 5;
const ONE_LEAD: (&str, &str) = ("GET", "/api/v1/leads?limit=1");

/// A key of one round.
struct Short {
    id: String,
    key: String,
    /// When the response to the revocation arrived.
    revoked: OnceLock<Instant>,
}

impl Short {
    /// Whether the key must no longer work for something begun at this time.
    fn is_over(&self, at: Instant) -> bool {
        let revoked = self.revoked.get();
        revoked.is_some_and(|revoked| at > *revoked + ALLOWED)
    }
}

/// One key after the other.
pub(crate) async fn go_on(mut here: Here) {
    loop {
        here.chance.pause(here.rest()).await;
        let mark = format!("mark {:x}", here.chance.throw());
        let Some(short) = make(&here).await else {
            here.got("no key");
            continue;
        };
        let under_way = async {
            tokio::join!(
                async { here.got(ended("upload", &write(&here, &short).await)) },
                async { here.got(ended("feed", &read(&here, &short, &mark).await)) },
            );
            // The other part decides when the round is over.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = under_way => {}
            () = revoke_and_ask(&here, &short, &mark) => {}
        }
    }
}

fn ended(what: &str, how: &io::Result<()>) -> String {
    match how {
        Ok(()) => format!("{what} ended by the server"),
        Err(_) => format!("{what} cut off"),
    }
}

/// Creates a key, and waits until it works.
async fn make(here: &Here) -> Option<Short> {
    let scopes = ["records:write", "events:read", "read:leads", "keys:manage"];
    let terms = json!({"name": "short", "scopes": scopes});
    let (_, made) = here.send(("POST", "/api/v1/keys"), &terms).await;
    let text = |field: &str| made[field].as_str().map(str::to_owned);
    let (id, key) = (text("keyId")?, text("key")?);
    for _ in 0..TRIES {
        sleep(OFTEN).await;
        let (told, _) = here.send_with(&key, ONE_LEAD, &Value::Null).await;
        if is_success(&told) {
            let revoked = OnceLock::new();
            return Some(Short { id, key, revoked });
        }
    }
    None
}

/// Revokes it, and uses it when that has to be known everywhere.
async fn revoke_and_ask(here: &Here, short: &Short, mark: &str) {
    sleep(A_WHILE).await;
    let path = format!("/api/v1/keys/{}", short.id);
    for _ in 0..TRIES {
        let (told, _) = here.send(("DELETE", &path), &json!({})).await;
        // Gone already: an earlier try without a response has revoked it.
        if is_success(&told) || told == "404" {
            short.revoked.get_or_init(Instant::now);
            break;
        }
        sleep(OFTEN).await;
    }
    if short.revoked.get().is_none() {
        return here.got("not revoked");
    }
    sleep(ALLOWED + OFTEN).await;
    for number in 0..REQUESTS {
        ask(here, short, number).await;
        // A new event for the feed, which must have ended.
        let record = json!({"name": format!("{mark} {number}")});
        let path = format!("{LEADS}/mark-{}", here.nth);
        here.send(("PUT", &path), &record).await;
        sleep(OFTEN).await;
    }
    sleep(ALLOWED).await;
}

/// Reads, writes and grants with a key that has been revoked for longer than a second.
async fn ask(here: &Here, short: &Short, number: usize) {
    let (path, record) = (
        format!("{LEADS}/late-{}", here.nth),
        json!({"name": "Late"}),
    );
    let terms = json!({"name": "late", "scopes": ["read:leads"]});
    let (what, request, body) = match number % 3 {
        0 => ("read", ONE_LEAD, &Value::Null),
        1 => ("written", ("PUT", path.as_str()), &record),
        _ => ("given", ("POST", "/api/v1/keys"), &terms),
    };
    let (told, _) = here.send_with(&short.key, request, body).await;
    here.got(if is_success(&told) {
        format!("{what} after the revocation")
    } else {
        format!("asked {told}")
    });
}

/// Writes lines for as long as they are accepted.
async fn write(here: &Here, short: &Short) -> io::Result<()> {
    let mut stream = uploads::begin(here, &short.key).await?;
    let (answers, mut sending) = stream.split();
    // The time each line was sent, in order.
    let sent = Mutex::new(Vec::new());
    let send = async {
        for number in 0_u64.. {
            // The ids repeat, so that the leftover data stays bounded.
            let id = format!("short-{}-{}", here.nth, number % 50);
            let chunk = uploads::chunk(&json!({"id": id, "name": format!("Short {number}")}));
            sent.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Instant::now());
            sending.write_all(chunk.as_bytes()).await?;
            sleep(OFTEN).await;
        }
        Ok(())
    };
    let take = each_line(answers, |line| {
        note_refusal(here, "upload", line);
        let Ok(told) = serde_json::from_str::<Value>(line) else {
            return; // Chunk framing.
        };
        let nth = told["line"]
            .as_u64()
            .and_then(|nth| usize::try_from(nth).ok());
        let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        let at = nth.and_then(|nth| sent.get(nth.checked_sub(1)?));
        if told["status"].is_string() && at.is_some_and(|at| short.is_over(*at)) {
            here.got("a line taken after the revocation");
        }
    });
    tokio::select! {
        sent = send => sent,
        ended = take => ended,
    }
}

/// Reads the feed; the mark is written when it must not be shown any more.
async fn read(here: &Here, short: &Short, mark: &str) -> io::Result<()> {
    let (path, more) = (
        "/api/v1/events?types=lead.*",
        "accept: text/event-stream\r\n",
    );
    let asked = here.ground.head("GET", path, &short.key, more);
    let mut stream = send(here.nth, &asked).await?;
    let (answers, _sending) = stream.split();
    each_line(answers, |line| {
        note_refusal(here, "feed", line);
        if line.contains(mark) {
            here.got("an event shown after the revocation");
        }
    })
    .await
}

/// Reports a response other than 200.
fn note_refusal(here: &Here, what: &str, line: &str) {
    let status = line.strip_prefix("HTTP/1.1 ");
    if let Some(status) = status.filter(|status| !status.starts_with("200")) {
        here.got(format!("{what} {}", status.get(..3).unwrap_or("odd")));
    }
}

/// The last chunk of a response; the connection may stay open after it.
const LAST_CHUNK: &str = "0";

/// Passes on each line until there are no more.
async fn each_line(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut take: impl FnMut(&str),
) -> io::Result<()> {
    let mut got = Vec::new();
    while from.read_buf(&mut got).await? > 0 {
        while let Some(end) = got.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = got.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if line.trim() == LAST_CHUNK {
                return Ok(());
            }
            take(line.trim());
        }
    }
    Ok(())
}
