//! How soon positions are seen, and what a reader gets that is too slow for them.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use harness::{Socket, System};
use serde_json::{Value, json};

use super::live_locations::{Person, event, snapshot};
use crate::system;

const WALKERS: usize = 8;
const ARRAYS: i64 = 20;

/// Whether the frame reports a person's last position.
fn is_end(frame: &Value) -> bool {
    frame["event"]["data"]["place_name"] == "the end"
}

/// Sends more positions than the system buffers for a client that does not read them.
async fn walk(system: &System, code: &str) -> Person {
    let walker = Person::without_limits(system, "Walker").await;
    walker.join(code).await;
    let start = Utc::now();
    let fix = |nth, place_name: &str| {
        let at = start + TimeDelta::milliseconds(nth);
        json!({"lat": 1, "lng": 1, "place_name": place_name, "recorded_at": at})
    };
    for some in 0..ARRAYS {
        let fixes = some * 100..some * 100 + 100;
        let fixes = fixes.map(|nth| fix(nth, &"🧭".repeat(200)));
        walker.sends(&fixes.collect()).await;
    }
    walker.sends(&fix(ARRAYS * 100, "the end")).await;
    walker
}

/// Does something while sockets that are not read send pings.
async fn meanwhile<T>(sockets: &mut [&mut Socket], work: impl Future<Output = T>) -> T {
    let mut beat = tokio::time::interval(Duration::from_secs(5));
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = beat.tick() => {
                for socket in sockets.iter_mut() {
                    socket.ping().await;
                }
            }
        }
    }
}

async fn everybodys_end(socket: &mut Socket) {
    let mut told = 0;
    while told < WALKERS {
        told += usize::from(is_end(&socket.next().await));
    }
}

#[tokio::test]
async fn a_slow_reader_gets_the_newest_of_each_person() {
    let system = system().await;
    let ben = Person::register(system, "Ben").await;
    let circle = ben.circle().await;
    let code = ben.invite(&circle).await;
    let (mut bens, mut other) = (ben.socket(system).await, ben.socket(system).await);
    snapshot(&mut bens).await;
    snapshot(&mut other).await;
    bens.subscribe("s", "sos", None).await;
    let walking = join_all((0..WALKERS).map(|_| walk(system, &code)));
    let walkers = meanwhile(&mut [&mut bens, &mut other], walking).await;
    let help = walkers[0].client.post("/sos/trigger", &json!({})).await;
    help.ok(202);
    // Only then is everything certain to be queued for the socket that has not read anything.
    meanwhile(&mut [&mut bens], everybodys_end(&mut other)).await;
    let (mut conflated, mut seen, mut helped, mut ended) = (0, 0, false, 0);
    while !helped || ended < WALKERS {
        let frame = bens.next().await;
        match frame["type"].as_str().unwrap() {
            "conflated" => {
                assert_eq!(frame["id"], "l");
                assert!(frame["from"].is_string() && frame["to"].is_string());
                conflated += 1;
            }
            "event" if frame["id"] == "s" => helped = true,
            "event" => {
                seen += 1;
                ended += usize::from(is_end(&frame));
            }
            other => panic!("{other}: {frame}"),
        }
    }
    assert!(conflated > 0, "all {seen} were taken");
    assert!(seen < WALKERS * 2_000, "{seen} were taken");
}

/// Sends `count` positions, one every 10 ms, and returns how long each took to the other's socket,
/// shortest first.
async fn delays(sender: &Person, receiver: &mut Socket, count: usize) -> Vec<Duration> {
    let mut due = tokio::time::interval(Duration::from_millis(10));
    let (sent, arrived) = tokio::join!(
        async {
            let mut sent = Vec::with_capacity(count);
            for step in 0..count {
                due.tick().await;
                sent.push(Instant::now());
                sender.is_at(0.0, &step.to_string()).await;
            }
            sent
        },
        async {
            let mut arrived = Vec::with_capacity(count);
            while arrived.len() < count {
                let (_, _, data) = event(receiver).await;
                assert_eq!(data["place_name"], arrived.len().to_string());
                arrived.push(Instant::now());
            }
            arrived
        }
    );
    let both = arrived.into_iter().zip(sent);
    let mut delays: Vec<Duration> = both.map(|(arrived, sent)| arrived - sent).collect();
    delays.sort();
    delays
}

/// A machine that builds and tests at once has its pauses, so one quick round is enough: an
/// implementation that waits for a clock and not for the log is slow in each.
#[tokio::test]
async fn a_position_is_seen_as_soon_as_it_is_taken() {
    const ROUNDS: usize = 20;
    let system = system().await;
    let anna = Person::without_limits(system, "Anna").await;
    let ben = Person::register(system, "Ben").await;
    let circle = anna.circle().await;
    ben.join(&anna.invite(&circle).await).await;
    let mut bens = ben.socket(system).await;
    snapshot(&mut bens).await;
    let mut medians = Vec::new();
    for _ in 0..ROUNDS {
        let delays = delays(&anna, &mut bens, 50).await;
        if delays[25] < Duration::from_millis(50) {
            return;
        }
        medians.push(delays[25]);
    }
    panic!("{medians:?}");
}
