//! Attacks without a key.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Here;
use crate::wire::{answer, ask, connect, outcome, send};

/// The announced length of a body without a key: just under the limit for strangers, so that it is
/// kept.
const STRANGERS_BODY: usize = 16_000;
/// Interval between two bytes of a client that keeps the server waiting.
const DRIP: Duration = Duration::from_secs(1);

/// Holds a connection with `hold`, repeatedly: after being cut off it reconnects.
async fn hold_on(mut here: Here, hold: impl AsyncFn(&Here, &mut TcpStream) -> io::Result<()>) {
    loop {
        here.chance.pause(here.rest()).await;
        let held = async {
            let mut stream = connect(here.nth, here.ground.commands).await?;
            hold(&here, &mut stream).await
        };
        let told = match held.await {
            Ok(()) => "closed",
            Err(error) if error.kind() == io::ErrorKind::TimedOut => "not taken",
            Err(_) => "cut off",
        };
        here.got(told);
    }
}

/// Sends these bytes at every tick, until the other side closes the connection.
async fn drip(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut taken = [0; 1024];
    let mut ticks = tokio::time::interval(DRIP);
    loop {
        tokio::select! {
            read = stream.read(&mut taken) => if read? == 0 {
                return Ok(());
            },
            _ = ticks.tick() => stream.write_all(bytes).await?,
        }
    }
}

pub(crate) async fn send_no_end(here: Here) {
    hold_on(here, async |here, stream| {
        let neighbour = here.ground.neighbours.get(here.nth % 4);
        let (path, key, length) = match neighbour {
            Some(with_key) => (
                "/api/v1/workflows/none/trigger",
                with_key.key.as_str(),
                here.ground.size.body_bytes,
            ),
            None => ("/auth/login", "", STRANGERS_BODY),
        };
        let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        let head = here.ground.head("POST", path, key, &more);
        stream.write_all(&head.bytes).await?;
        let sent = vec![b' '; length - length / 10];
        tokio::time::timeout(Duration::from_mins(1), stream.write_all(&sent)).await??;
        drip(stream, b" ").await
    })
    .await;
}

pub(crate) async fn send_heads_for_ever(here: Here) {
    hold_on(here, async |_, stream| {
        stream
            .write_all(b"GET /docs HTTP/1.1\r\nhost: waypost\r\n")
            .await?;
        drip(stream, b"x-more: 0\r\n").await
    })
    .await;
}

pub(crate) async fn say_nothing(here: Here) {
    hold_on(here, async |here, stream| {
        // Some have sent a request once.
        if here.nth % 2 == 0 {
            let asked = here.ground.head("GET", "/healthz", "", "");
            stream.write_all(&asked.bytes).await?;
        }
        let mut taken = [0; 1024];
        while stream.read(&mut taken).await? > 0 {}
        Ok(())
    })
    .await;
}

/// Like most clients: the body in a packet of its own, and then the next request.
pub(crate) async fn send_bodies_late(mut here: Here) {
    loop {
        here.chance.pause(here.pause()).await;
        let answered = refused_twice(&here).await;
        here.got(match answered {
            Ok(told) => told.to_owned(),
            Err(error) => outcome(&Err(error)),
        });
    }
}

async fn refused_twice(here: &Here) -> io::Result<&'static str> {
    let body = [b' '; 2_000];
    let more = "content-type: application/json\r\ncontent-length: 2000\r\n";
    let path = "/api/v1/workflows/none/trigger";
    let asked = here.ground.head("POST", path, "wp_none", more);
    let mut stream = send(here.nth, &asked).await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    stream.write_all(&body).await?;
    let first = answer(&mut stream).await?;
    if first.to_lowercase().contains("connection: close") {
        return Ok("refused, and told that the connection ends");
    }
    stream.write_all(&asked.bytes).await?;
    stream.write_all(&body).await?;
    Ok(match answer(&mut stream).await {
        Ok(_) => "refused twice",
        Err(_) => "refused, and then left without an answer",
    })
}

/// Sends requests from ever-changing addresses, out of several thousand.
async fn ask_on(mut here: Here, of: impl Fn(u64) -> (&'static str, String)) {
    loop {
        here.chance.pause(here.pause()).await;
        let (path, body) = of(here.chance.throw());
        let from = here.chance.below(4_000);
        let asked = here.ground.json("POST", path, "", &body);
        let answered = ask(from, &asked).await;
        here.got(outcome(&answered));
    }
}

pub(crate) async fn guess_passwords(here: Here) {
    ask_on(here, |throw| {
        let email = format!("guess{}@crowd.example", throw % 1_000);
        let body = json!({"email": email, "password": format!("a guess {throw}")});
        ("/auth/login", body.to_string())
    })
    .await;
}

pub(crate) async fn register(here: Here) {
    ask_on(here, |throw| {
        let email = format!("crowd{throw}@crowd.example");
        let phone = format!("+4915{:09}", throw % 1_000_000_000);
        let body = json!({"name": "Crowd", "email": email, "password": "a long password",
            "phone": phone});
        ("/auth/register", body.to_string())
    })
    .await;
}

pub(crate) async fn guess_codes(here: Here) {
    ask_on(here, |throw| {
        let phone = format!("+4916{:09}", throw % 10_000);
        if throw % 2 == 0 {
            ("/auth/otp/send", json!({"phone": phone}).to_string())
        } else {
            let code = format!("{:06}", (throw >> 8) % 1_000_000);
            let body = json!({"phone": phone, "code": code});
            ("/auth/otp/verify", body.to_string())
        }
    })
    .await;
}
