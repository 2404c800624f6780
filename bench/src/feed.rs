//! Events of the whole feed per second, over a bare ordered consumer of the same stream.

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::export::import_contacts;
use crate::report::Report;
use crate::system::System;
use crate::{ceiling, load};

const STREAM: &str = "EVENTS";

/// Reads all events of an organization that created `count` contacts.
pub(crate) async fn measure(system: &System, rounds: usize, count: usize, report: &mut Report) {
    let (org, key) = system.organization().await;
    import_contacts(system, &org, count).await;
    told(system, &key, count).await;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let bare = ceiling::consumed(system.servers.nats_url(), STREAM).await;
        pairs.push((told(system, &key, count).await, bare));
    }
    report.rate(
        "events told as NDJSON, over a bare ordered consumer",
        &pairs,
        "0.5",
    );
}

/// Lines per second of `GET /api/v1/events`.
async fn told(system: &System, key: &str, least: usize) -> f64 {
    let started = Instant::now();
    let mut stream = TcpStream::connect(system.addr())
        .await
        .expect("a connection");
    let request = load::get("/api/v1/events", key, "connection: close\r\n");
    stream.write_all(&request).await.expect("sending");
    let mut buffer = vec![0; 256 * 1024];
    let (mut lines, mut before) = (0_u32, b'\r');
    loop {
        let read = stream.read(&mut buffer).await.expect("an answer");
        if read == 0 {
            break;
        }
        for byte in &buffer[..read] {
            // Chunk framing ends its lines with `\r\n`.
            lines += u32::from(*byte == b'\n' && before != b'\r');
            before = *byte;
        }
    }
    assert!(lines as usize >= least, "the feed is whole: {lines}");
    f64::from(lines) / started.elapsed().as_secs_f64()
}
