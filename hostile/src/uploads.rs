//! Uploads of endless lines of records.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Here;
use crate::wire::send;

pub(crate) const LEADS: &str = "/api/v1/records/leads";

pub(crate) async fn upload(mut here: Here) {
    loop {
        here.chance.pause(Duration::from_secs(1)).await;
        let told = match lines(&here).await {
            Ok(()) => "ended by the server",
            Err(_) => "cut off",
        };
        here.got(told);
    }
}

/// Begins an upload with a key; its lines follow.
pub(crate) async fn begin(here: &Here, key: &str) -> io::Result<TcpStream> {
    let more = "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n";
    send(here.nth, &here.ground.head("POST", LEADS, key, more)).await
}

/// A record as a chunk with one line.
pub(crate) fn chunk(record: &Value) -> String {
    let line = record.to_string();
    format!("{:x}\r\n{line}\n\r\n", line.len() + 1)
}

async fn lines(here: &Here) -> io::Result<()> {
    let mut stream = begin(here, &here.neighbour().key).await?;
    let (mut answers, mut sending) = stream.split();
    let send = async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / here.ground.size.lines);
        for number in 0_u64.. {
            ticks.tick().await;
            // The ids repeat, so that the leftover data stays bounded.
            let id = format!("endless-{}-{}", here.nth, number % 500);
            let chunk = chunk(&json!({"id": id, "name": format!("Endless {number}")}));
            sending.write_all(chunk.as_bytes()).await?;
        }
        Ok(())
    };
    let take = async {
        let mut taken = [0; 4096];
        while answers.read(&mut taken).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        sent = send => sent,
        ended = take => ended,
    }
}
