//! A bare loop that makes the same appends and calls as runs: the most that a client which decides
//! nothing and reads nothing could get from the same servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::{Client, HeaderMap};
use futures::future::join_all;
use serde_json::Value;
use uuid::Uuid;

use crate::ceiling;
use crate::load::{self, Connection};
use crate::system::System;

/// Messages per batch, the server's limit.
const BATCH: usize = 1_000;
/// Concurrent loops: while one waits for the disk or for responses, another sends.
const LOOPS: usize = 2;
/// Connections of each loop for its calls.
const CONNECTIONS: usize = 32;

/// The parts of one run.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    /// Events of its first commit.
    pub(crate) first: usize,
    /// The receiver that it then calls, and the events of the commit that follows.
    pub(crate) call: Option<(SocketAddr, usize)>,
}

impl Parts {
    /// Total number of events.
    pub(crate) fn events(self) -> usize {
        self.first + self.call.map_or(0, |(_, second)| second)
    }
}

/// Runs per second of a bare loop.
pub(crate) async fn rate(system: &System, parts: Parts, time: Duration) -> f64 {
    let work = |context, end| run(context, parts, end);
    ceiling::rate(system, LOOPS, time, work).await
}

async fn run(context: jetstream::Context, parts: Parts, end: Instant) -> u32 {
    let client = context.client();
    let together = BATCH / parts.first;
    let mut connections = Vec::new();
    if let Some((receiver, _)) = parts.call {
        connections = join_all((0..CONNECTIONS).map(|_| Connection::open(receiver))).await;
    }
    let request = Arc::new(load::post("/", "none", r#"{"score":81}"#));
    let mut done = 0;
    while Instant::now() < end {
        let subject = |_| format!("bare.run.{}", Uuid::now_v7());
        let mut runs: Vec<_> = (0..together).map(|n| (subject(n), 0)).collect();
        append(&client, &mut runs, parts.first).await;
        if let Some((_, second)) = parts.call {
            call(&mut connections, &request, together).await;
            append(&client, &mut runs, second).await;
        }
        done += u32::try_from(together).expect("a small number");
    }
    done
}

/// Appends `events` events to each of the runs after their last ones, in one atomic batch.
async fn append(client: &Client, runs: &mut [(String, u64)], events: usize) {
    let batch = Uuid::now_v7().simple().to_string();
    let all = runs.len() * events;
    let mut place = 0;
    for (subject, last) in &*runs {
        for event in 0..events {
            place += 1;
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Batch-Id", batch.as_str());
            headers.insert("Nats-Batch-Sequence", place.to_string());
            if event == 0 {
                headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string());
            }
            let (subject, payload) = (subject.clone(), vec![b'x'; ceiling::PAYLOAD].into());
            if place < all {
                let sent = client.publish_with_headers(subject, headers, payload);
                sent.await.expect("a publish");
                continue;
            }
            headers.insert("Nats-Batch-Commit", "1");
            let answer = client.request_with_headers(subject, headers, payload);
            let answer = answer.await.expect("an acknowledgement");
            let answer: Value = serde_json::from_slice(&answer.payload).expect("JSON");
            let end = answer["seq"].as_u64().expect("a batch that is stored");
            tell_places(runs, events as u64, end);
            return;
        }
    }
}

/// Sets the runs' last sequences: a batch's messages are consecutive, up to `end`.
fn tell_places(runs: &mut [(String, u64)], events: u64, end: u64) {
    for ((_, last), behind) in runs.iter_mut().rev().zip(0..) {
        *last = end - events * behind;
    }
}

async fn call(connections: &mut [Connection], request: &Arc<Vec<u8>>, calls: usize) {
    let each = calls.div_ceil(connections.len());
    let all = connections.iter_mut().map(|connection| async {
        for _ in 0..each {
            let head = connection.send(request).await;
            assert!(head.starts_with("200"), "{head}");
        }
    });
    join_all(all).await;
}
