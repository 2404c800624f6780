//! Sockets that subscribe to everything and read nothing.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::Here;
use crate::wire::{answer, connect};

/// Interval between two signs of life.
const A_WHILE: Duration = Duration::from_secs(3);

pub(crate) async fn subscribe(mut here: Here) {
    loop {
        here.chance.pause(here.rest()).await;
        here.got(match listen_to_nothing(&here).await {
            Ok(()) => "ended by the server",
            Err(_) => "cut off",
        });
    }
}

async fn listen_to_nothing(here: &Here) -> io::Result<()> {
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let asked = here.ground.head("GET", "/ws", "", upgrade);
    let mut stream = connect(here.nth, here.ground.sockets).await?;
    stream.write_all(&asked.bytes).await?;
    let answered = answer(&mut stream).await?;
    if !answered.starts_with("101") {
        here.got(answered.get(..3).unwrap_or("odd"));
        return Ok(());
    }
    let auth = json!({"type": "auth", "token": here.neighbour().key});
    stream.write_all(&frame(&auth)).await?;
    for (id, channel) in [("r", "runs"), ("e", "events")] {
        let ask = json!({"type": "subscribe", "id": id, "channel": channel});
        stream.write_all(&frame(&ask)).await?;
    }
    // Unsubscribing from an unknown channel keeps the connection alive as well.
    let mut ticks = tokio::time::interval(A_WHILE);
    loop {
        ticks.tick().await;
        stream
            .write_all(&frame(&json!({"type": "unsubscribe", "id": "none"})))
            .await?;
    }
}

/// A masked text frame; the mask is all zeros.
fn frame(content: &Value) -> Vec<u8> {
    const TEXT: u8 = 0x81;
    const MASKED: u8 = 0x80;
    /// The length follows in two bytes.
    const LONGER: u8 = 0x7e;
    let text = content.to_string().into_bytes();
    let mut frame = vec![TEXT];
    match u8::try_from(text.len()) {
        Ok(length) if length < LONGER => frame.push(MASKED | length),
        _ => {
            frame.push(MASKED | LONGER);
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&text);
    frame
}
