//! From sending a position to its arrival on the sockets of those who share a circle.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;

const PER_SECOND: usize = 100;
const PERSONS: usize = 10;

/// A position as it appears on the socket: its person and its time.
pub(crate) type Fix = (u64, String);

/// Measures at a hundred positions a second in one circle.
pub(crate) async fn measure(system: &System, time: Duration, report: &mut Report) {
    let addr = system.addr();
    let mut persons = Vec::new();
    for number in 0..PERSONS {
        persons.push(Person::register(system, number).await);
    }
    gather(addr, &persons).await;
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    watch(addr, &persons[0].token, arrived).await;

    let total = PER_SECOND * usize::try_from(time.as_secs() + 1).expect("small");
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / 100);
    let mut connection = Connection::open(addr).await;
    let mut sent: HashMap<Fix, Instant> = HashMap::new();
    for number in 0..total {
        ticks.tick().await;
        let person = &persons[number % PERSONS];
        let at = written(Utc::now());
        let body = json!({ "lat": 53.5, "lng": 10.0, "accuracy": 5, "recorded_at": at });
        let request = load::post("/location/update", &person.token, &body.to_string());
        sent.insert((person.id, at), Instant::now());
        let head = connection.send(&request).await;
        assert!(head.starts_with("202"), "{head}");
    }
    let mut latencies = Vec::new();
    while latencies.len() < total {
        let heard = tokio::time::timeout(Duration::from_secs(10), arrivals.recv()).await;
        let (fix, at) = heard.expect("every position arrives").expect("a socket");
        if let Some(sent) = sent.remove(&fix) {
            latencies.push(at.saturating_duration_since(sent));
        }
    }
    // The first second is a warm-up.
    latencies.drain(..PER_SECOND);
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    report.time("position sent → on a socket at 100/s, p50", at(50), "");
    report.time(
        "position sent → on a socket at 100/s, p99",
        at(99),
        "under 50 ms",
    );
}

/// The format in which times are sent and received.
pub(crate) fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A person with an account.
pub(crate) struct Person {
    pub(crate) id: u64,
    pub(crate) token: String,
}

/// The password of every person.
pub(crate) const PASSWORD: &str = "a long password";

/// A person's e-mail address.
pub(crate) fn email(number: usize) -> String {
    format!("person{number}@bench.example")
}

impl Person {
    pub(crate) async fn register(system: &System, number: usize) -> Self {
        let email = email(number);
        let body = json!({ "name": "Bench", "email": email, "password": PASSWORD });
        let request = load::post("/auth/register", "", &body.to_string());
        let mut connection = Connection::open(system.addr()).await;
        let session = connection.send_for_body(&request).await;
        let many = "1000000000";
        let tier = ["account", "tier", &email, "enterprise"];
        let numbers = ["--requests", many, "--locations", many];
        system.waypost(&[&tier[..], &numbers].concat()).await;
        Self {
            id: session["user"]["id"].as_u64().expect("an id"),
            token: session["access_token"]
                .as_str()
                .expect("a token")
                .to_owned(),
        }
    }
}

pub(crate) async fn gather(addr: SocketAddr, persons: &[Person]) {
    let mut connection = Connection::open(addr).await;
    let mut post = async |path: &str, token: &str, body: Value| {
        let request = load::post(path, token, &body.to_string());
        connection.send_for_body(&request).await
    };
    let first = &persons[0].token;
    let circle = post("/circles", first, json!({ "name": "Bench" })).await;
    let invites = format!("/circles/{}/invites", circle["id"].as_str().expect("an id"));
    for person in &persons[1..] {
        let invite = post(&invites, first, json!({})).await;
        post(
            "/circles/join",
            &person.token,
            json!({ "code": invite["code"] }),
        )
        .await;
    }
}

/// Reports every position that arrives, and when.
pub(crate) async fn watch(
    addr: SocketAddr,
    token: &str,
    arrived: mpsc::UnboundedSender<(Fix, Instant)>,
) {
    let (mut socket, _) = connect_async(format!("ws://{addr}/ws"))
        .await
        .expect("a socket");
    for frame in [
        json!({ "type": "auth", "token": token }),
        json!({ "type": "subscribe", "id": "s", "channel": "locations" }),
    ] {
        let sent = socket.send(Message::text(frame.to_string())).await;
        sent.expect("sending");
    }
    let (ready, subscribed) = tokio::sync::oneshot::channel();
    let mut ready = Some(ready);
    tokio::spawn(async move {
        while let Some(Ok(message)) = socket.next().await {
            let at = Instant::now();
            let Message::Text(text) = message else {
                continue;
            };
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            match frame["type"].as_str() {
                Some("snapshot") => _ = ready.take().map(|ready| ready.send(())),
                Some("event") => {
                    let data = &frame["event"]["data"];
                    let id = data["user_id"].as_u64().expect("an id");
                    let time = data["recorded_at"].as_str().expect("a time");
                    let time: DateTime<Utc> = time.parse().expect("a time");
                    if arrived.send(((id, written(time)), at)).is_err() {
                        return;
                    }
                }
                _ => {}
            }
        }
    });
    subscribed.await.expect("a snapshot");
}
