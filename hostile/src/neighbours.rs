//! Attacks with an organization and a key of their own.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Here;
use crate::attack::CALLERS;
use crate::wire::{Request, ask, outcome, send};

pub(crate) const A_WHILE: Duration = Duration::from_secs(3);

/// Triggers one of the neighbour's workflows.
pub(crate) async fn trigger(here: &Here, workflow: &str, body: &str) {
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let key = &here.neighbour().key;
    let asked = here.ground.json("POST", &path, key, body);
    let answered = ask(here.nth, &asked).await;
    here.got(outcome(&answered));
}

/// Requests everything and reads none of it, or subscribes and never reads.
pub(crate) async fn read_nothing(mut here: Here) {
    loop {
        here.chance.pause(here.rest()).await;
        let (path, more) = match here.nth % 3 {
            0 => ("/api/v1/events", "accept: text/event-stream\r\n"),
            1 => ("/api/v1/locations", ""),
            _ => ("/api/v1/events", ""),
        };
        let asked = here.ground.head("GET", path, &here.neighbour().key, more);
        let told = match wait_without_reading(&here, &asked).await {
            Ok(()) => "ended by the server",
            Err(_) => "cut off",
        };
        here.got(told);
    }
}

async fn wait_without_reading(here: &Here, asked: &Request) -> io::Result<()> {
    let mut stream = send(here.nth, asked).await?;
    // The end would only show after everything that the system buffers for this reader, so it tries
    // to write now and then.
    loop {
        tokio::time::sleep(A_WHILE).await;
        stream.write_all(b"\r\n").await?;
    }
}

/// Reads an export a few bytes a second.
pub(crate) async fn read_slowly(mut here: Here) {
    const PATHS: [&str; 3] = [
        "/api/export/contacts",
        "/api/export/contacts?format=excel",
        "/api/export/contacts?format=pdf",
    ];
    loop {
        here.chance.pause(here.rest()).await;
        let path = PATHS[here.nth / here.ground.neighbours.len() % PATHS.len()];
        let asked = here.ground.head("GET", path, &here.neighbour().key, "");
        let taken = async {
            let mut stream = send(here.nth, &asked).await?;
            let mut taken = [0; 512];
            let mut all = 0;
            loop {
                let read = stream.read(&mut taken).await?;
                if read == 0 {
                    return Ok::<_, io::Error>(all);
                }
                if all == 0 && !taken.starts_with(b"HTTP/1.1 200") {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                all += read;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        here.got(match taken.await {
            Ok(_) => "ended by the server",
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => "refused",
            Err(_) => "cut off",
        });
    }
}

/// Three at a time, because that was enough to stop everything.
pub(crate) async fn compute(mut here: Here) {
    let size = here.ground.size.numbers;
    let numbers: Vec<_> = (0..size).collect();
    let body = json!({"l": numbers, "s": "ab ".repeat(size / 10)}).to_string();
    loop {
        let workflows = ["select", "reject", "replace"];
        for workflow in workflows {
            trigger(&here, workflow, &body).await;
        }
        here.chance.pause(A_WHILE).await;
    }
}

/// Triggers a workflow that triggers itself.
pub(crate) async fn fan(mut here: Here) {
    for _ in 0..here.ground.size.sparks {
        trigger(&here, "spark", "{}").await;
        here.chance.pause(A_WHILE * 3).await;
    }
}

/// Starts runs that each hold a place for as long as a call may take.
pub(crate) async fn call(mut here: Here) {
    for _ in 0..here.ground.size.calls / CALLERS {
        trigger(&here, "hang", "{}").await;
    }
    loop {
        here.chance.pause(A_WHILE * 5).await;
        trigger(&here, "hang", "{}").await;
    }
}

/// Sends events to webhooks that never answer.
pub(crate) async fn tell(mut here: Here) {
    loop {
        here.chance.pause(here.pause()).await;
        trigger(&here, "tell", "{}").await;
    }
}

/// Ignores 429 and its `Retry-After`.
pub(crate) async fn hammer(mut here: Here) {
    let key = here.neighbour().limited_key.clone();
    let path = "/api/v1/workflows/tell/trigger";
    loop {
        here.chance.pause(here.pause() / 10).await;
        let asked = here.ground.json("POST", path, &key, "{}");
        let answered = ask(here.nth, &asked).await;
        here.got(outcome(&answered));
    }
}

/// Sends U+0000 and halves of surrogate pairs, and reads what would contain them.
pub(crate) async fn send_odd_text(mut here: Here) {
    let reads = [
        "/api/v1/workflows/tell/runs",
        "/api/v1/workflows",
        "/api/v1/leads?limit=5",
    ];
    loop {
        here.chance.pause(A_WHILE).await;
        trigger(&here, "tell", r#"{"a\u0000": "\u0000"}"#).await;
        trigger(&here, "tell", r#"{"a": "\ud800"}"#).await;
        for path in reads {
            let asked = here.ground.head("GET", path, &here.neighbour().key, "");
            let answered = ask(here.nth, &asked).await;
            here.got(format!("read {}", outcome(&answered)));
        }
    }
}
