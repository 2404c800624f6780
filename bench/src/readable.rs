//! From a write's response to a read that shows it, and reads at a write's position, at half of the
//! maximum rate of writes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;

const PATH: &str = "/api/v1/records/contacts";
const CONNECTIONS: u32 = 64;
/// Number of clients that write and read back concurrently.
const READERS: usize = 8;

/// Measures both; `reads` writes are read back at their position.
pub(crate) async fn measure(system: &System, time: Duration, reads: usize, report: &mut Report) {
    let addr = system.addr();
    let (_, key) = system.organization().await;
    let write = load::post(
        PATH,
        &key,
        r#"{"email":"ada@example.com","firstName":"Ada"}"#,
    );
    let load = Arc::new(vec![write]);
    let most = load::run(addr, CONNECTIONS as usize, time, "201", load.clone()).await;
    assert_eq!(most.other, 0, "every write is taken");
    let half = most.rate() / 2.0;

    let loading = load::run_paced(addr, CONNECTIONS, half, time, load.clone());
    let (_, mut latencies) = tokio::join!(loading, until_readable(addr, &key, time));
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    let what = format!("a write's answer → readable at {half:.0} writes/s");
    report.time(&format!("{what}, p50"), at(50), "");
    report.time(&format!("{what}, p99"), at(99), "under 50 ms");

    let for_ever = Duration::from_hours(1);
    let loading = tokio::spawn(load::run_paced(addr, CONNECTIONS, half, for_ever, load));
    let readers = (0..READERS).map(|reader| {
        let (key, share) = (key.clone(), (reader..reads).step_by(READERS));
        tokio::spawn(async move { read_back(addr, &key, share).await })
    });
    let mut right = 0;
    for reader in readers.collect::<Vec<_>>() {
        right += reader.await.expect("a reader");
    }
    loading.abort();
    // The writers must end before the system is dropped.
    let _ = loading.await;
    report.right("reads at a write's position under that load", right, reads);
}

/// Writes one record after the other, and polls for each until it is visible.
async fn until_readable(addr: SocketAddr, key: &str, time: Duration) -> Vec<Duration> {
    let end = Instant::now() + time;
    let (mut writer, mut reader) = (Connection::open(addr).await, Connection::open(addr).await);
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let id = format!("seen-{}", latencies.len());
        let body = json!({ "id": id, "email": "ada@example.com" }).to_string();
        let (post, get) = (
            load::post(PATH, key, &body),
            load::get(&format!("{PATH}/{id}"), key, ""),
        );
        let head = writer.send(&post).await;
        assert!(head.starts_with("201"), "{head}");
        let answered = Instant::now();
        while !reader.send(&get).await.starts_with("200") {}
        latencies.push(answered.elapsed());
    }
    latencies
}

/// Writes these and reads each back at once; returns how often the read matched the write.
async fn read_back(addr: SocketAddr, key: &str, share: impl Iterator<Item = usize>) -> usize {
    let mut connection = Connection::open(addr).await;
    let mut right = 0;
    for n in share {
        let (id, email) = (format!("back-{n}"), format!("back{n}@example.com"));
        let body = json!({ "id": id, "email": email }).to_string();
        let head = connection.send(&load::post(PATH, key, &body)).await;
        assert!(head.starts_with("201"), "{head}");
        let position = load::header(&head, "waypost-position").expect("a position");
        let wait = format!("waypost-min-position: {position}\r\n");
        let get = load::get(&format!("{PATH}/{id}"), key, &wait);
        let head = connection.send(&get).await;
        right += usize::from(head.starts_with("200") && connection.body()["email"] == email);
    }
    right
}
