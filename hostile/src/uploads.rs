//! Lines of records without end.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Here;
use crate::wire::connect;

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

async fn lines(here: &Here) -> io::Result<()> {
    let more = "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n";
    let key = &here.neighbour().key;
    let asked = here.ground.head("POST", "/api/v1/records/leads", key, more);
    let mut stream = connect(here.nth, asked.to).await?;
    stream.write_all(&asked.bytes).await?;
    let (mut answers, mut sending) = stream.split();
    let send = async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / here.ground.size.lines);
        for number in 0_u64.. {
            ticks.tick().await;
            // The same ids over again: what is left behind stays bounded.
            let id = format!("endless-{}-{}", here.nth, number % 500);
            let line = json!({"id": id, "name": format!("Endless {number}")}).to_string();
            let chunk = format!("{:x}\r\n{line}\n\r\n", line.len() + 1);
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
