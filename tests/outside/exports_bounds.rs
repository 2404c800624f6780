//! Exports to slow clients.

use std::time::{Duration, Instant};

use harness::{Client, Organization, SlowReader, System, eventually};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::exports::{position_of, until_read, write};
use super::feeds_bounds::fill;
use crate::system;

const EXPORT: &str = "/api/export/contacts";

/// An organization with more contacts than buffers hold, and one with a single contact.
async fn large_and_small(system: &System) -> (Organization<'_>, Organization<'_>) {
    let (large, small) = tokio::join!(system.organization(), system.organization());
    fill(&large).await;
    let here = position_of("contacts", &large).await;
    until_read(&large, "c2999", &here).await;
    let here = write(&small, &[json!({"id": "one", "email": "a@b.c"})]).await;
    until_read(&small, "one", &here).await;
    (large, small)
}

/// Waits until a process has counted this.
async fn until_counted(system: &System, metric: &str, label: &str) {
    eventually(metric, async || {
        for (_, client) in system.clients() {
            let told = client.get("/metrics").await.text();
            let mut lines = told.lines();
            if lines.any(|line| line.starts_with(metric) && line.contains(label)) {
                return Some(());
            }
        }
        None
    })
    .await;
}

#[tokio::test]
async fn slow_readers_of_exports_hold_up_nobody() {
    // One database slot: held for as long as a client is slow, it would block all others.
    let settings = [
        ("WAYPOST_EXPORT_STREAMS", "1"),
        ("WAYPOST_EXPORT_LAG_SECONDS", "0.1"),
        ("WAYPOST_EXPORT_WAIT_SECONDS", "45"),
    ];
    let system = System::start(system().await.shape(), &settings).await;
    let (large, small) = large_and_small(&system).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let reader = SlowReader::get(&system, &large.key, EXPORT).await;
        assert_eq!(reader.status, 200);
        slow.push(reader);
    }
    let theirs = small.admin.get(EXPORT).await;
    assert_eq!(
        (theirs.status.as_u16(), theirs.text().lines().count()),
        (200, 2)
    );
    // Though slow, they get all of it.
    for reader in slow {
        let whole = reader.rest().await.expect("all of it");
        let whole = String::from_utf8(whole).unwrap();
        assert_eq!(whole.lines().count(), 3_001);
    }
}

#[tokio::test]
async fn an_export_that_nobody_takes_is_given_up() {
    let settings = [
        ("WAYPOST_EXPORT_FILES", "1"),
        ("WAYPOST_EXPORT_LAG_SECONDS", "0.1"),
        ("WAYPOST_EXPORT_STALL_SECONDS", "2"),
    ];
    let system = System::start(system().await.shape(), &settings).await;
    let (large, small) = large_and_small(&system).await;
    let unread = SlowReader::get(&system, &large.key, EXPORT).await;
    assert_eq!(unread.status, 200);
    until_counted(&system, "waypost_export_spooled_total", "").await;
    // There is one file, which the slow client holds until it is cut off.
    let file = small.admin.get(&format!("{EXPORT}?format=pdf")).await;
    assert_eq!(file.status, 200, "{}", file.text());
    assert_eq!(unread.rest().await, None, "a part for the whole");
}

#[tokio::test]
async fn an_export_ends_at_its_deadline() {
    // Enough for an export to begin while other tests run.
    let settings = [("WAYPOST_EXPORT_SECONDS", "10")];
    let system = System::start(system().await.shape(), &settings).await;
    let (large, _) = large_and_small(&system).await;
    let unread = SlowReader::get(&system, &large.key, EXPORT).await;
    assert_eq!(unread.status, 200);
    until_counted(&system, "waypost_answers_cut_total", "late").await;
    assert_eq!(unread.rest().await, None);
}

#[tokio::test]
async fn an_export_ends_with_its_key() {
    let system = system().await;
    let (large, _) = large_and_small(system).await;
    let terms = json!({"name": "reader", "scopes": ["export:contacts:read"]});
    let (_, made) = large.unused_key(&terms).await;
    let unread = SlowReader::get(system, made["key"].as_str().unwrap(), EXPORT).await;
    assert_eq!(unread.status, 200);
    let path = format!("/api/v1/keys/{}", made["keyId"].as_str().unwrap());
    large.admin.delete(&path).await.ok(204);
    // All processes know of the revocation once a key that was created later is known.
    large.client(&["admin"]).await;
    assert_eq!(unread.rest().await, None);
}

/// Number of files that all processes write or hold.
async fn files(processes: &[(&str, Client)]) -> u32 {
    let mut files = 0;
    for (_, client) in processes {
        let told = client.get("/metrics").await.text();
        let mut lines = told.lines();
        let gauge = lines.find_map(|line| line.strip_prefix("waypost_export_files "));
        files += gauge.map_or(0, |count| count.parse::<u32>().unwrap());
    }
    files
}

#[tokio::test]
async fn the_work_ends_within_a_second_when_its_client_goes_away() {
    let system = System::start(system().await.shape(), &[]).await;
    let org = system.organization().await;
    let many = |nth| json!({"id": format!("c{nth}"), "email": "a@b.c", "city": "x".repeat(200)});
    let records: Vec<_> = (0..20_000).map(many).collect();
    let here = write(&org, &records).await;
    let whole = org.admin.get_at(EXPORT, &here).await;
    assert_eq!(whole.text().lines().count(), 20_001);
    let processes = system.clients();
    for format in ["excel", "pdf"] {
        let mut client = TcpStream::connect(system.addr()).await.unwrap();
        let request = format!(
            "GET {EXPORT}?format={format} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            system.addr(),
            org.key
        );
        client.write_all(request.as_bytes()).await.unwrap();
        eventually("a file", async || {
            (files(&processes).await > 0).then_some(())
        })
        .await;
        drop(client);
        let began = Instant::now();
        let gone = "the end of the work";
        eventually(gone, async || (files(&processes).await == 0).then_some(())).await;
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
    }
}
