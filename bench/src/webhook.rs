//! From a trigger's acceptance to its webhook's arrival, at a steady rate.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Value, json};
use service::settings::EdgeSettings;
use tokio_util::sync::CancellationToken;

use crate::accept::put_workflow;
use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;

const PER_SECOND: u64 = 100;
const WORKFLOW: &str = "notify";

type Arrivals = Arc<Mutex<HashMap<u64, Instant>>>;

/// Measures at a hundred triggers a second.
pub(crate) async fn measure(system: &System, time: Duration, report: &mut Report) {
    let (org, key) = system.organization().await;
    let arrivals = Arrivals::default();
    let router = axum::Router::new().fallback(arrived);
    let addr = receive(router.with_state(arrivals.clone())).await;
    let url = format!("http://{addr}/");
    let definition = json!({
        "name": "Notify",
        "status": "ACTIVE",
        "steps": [
            { "id": "start", "type": "TRIGGER", "next": ["tell"] },
            { "id": "tell", "type": "NOTIFY", "event": "bench", "data": { "n": "{{ trigger.n }}" } },
        ],
    });
    put_workflow(system, &org, WORKFLOW, &definition).await;
    let mut connection = Connection::open(system.addr()).await;
    let body = json!({ "url": url, "events": ["custom.bench"] }).to_string();
    connection
        .send_for_body(&load::post("/api/v1/webhooks", &key, &body))
        .await;

    let warm_up = PER_SECOND;
    let total = warm_up + PER_SECOND * time.as_secs();
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / PER_SECOND));
    let mut accepted = Vec::new();
    for n in 0..total {
        ticks.tick().await;
        let path = format!("/api/v1/workflows/{WORKFLOW}/trigger");
        let head = connection
            .send(&load::post(&path, &key, &json!({ "n": n }).to_string()))
            .await;
        assert!(head.starts_with("202"), "{head}");
        accepted.push(Instant::now());
    }
    let end = Instant::now() + Duration::from_secs(10);
    while arrivals.lock().expect("a lock").len() < accepted.len() && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let arrivals = arrivals.lock().expect("a lock");
    let mut latencies: Vec<Duration> = (warm_up..total)
        .zip(&accepted[usize::try_from(warm_up).expect("small")..])
        .map(|(n, at)| {
            arrivals
                .get(&n)
                .expect("every webhook arrives")
                .saturating_duration_since(*at)
        })
        .collect();
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    report.time(
        "accepted → webhook arrived at 100/s, p50",
        at(50),
        "under 15 ms",
    );
    report.time(
        "accepted → webhook arrived at 100/s, p99",
        at(99),
        "under 60 ms",
    );
}

/// Starts a receiver of webhooks, and returns its address.
pub(crate) async fn receive(router: axum::Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (never, edge) = (CancellationToken::new(), EdgeSettings::default());
    tokio::spawn(service::serve(
        listener,
        router,
        never,
        Duration::ZERO,
        edge,
    ));
    addr
}

async fn arrived(State(arrivals): State<Arrivals>, body: Bytes) {
    let at = Instant::now();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    if let Some(n) = body["data"]["n"].as_u64() {
        arrivals.lock().expect("a lock").entry(n).or_insert(at);
    }
}
