//! Webhook deliveries per second, over a bare client's requests to the same receiver with as many
//! in progress.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use serde_json::json;

use crate::export::import_contacts;
use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;
use crate::webhook::receive;

/// Concurrent requests to one endpoint, Waypost's default.
const TO_ONE: usize = 32;
/// Concurrent requests to all endpoints of one organization that is alone, likewise.
const TO_ALL: usize = 256;
/// Number of endpoints of one organization.
const MANY: usize = 100;
/// How long the deliveries of imported events may take.
const TIMEOUT: Duration = Duration::from_mins(5);

/// When the first and the last request arrived, how many did, and the body of the last one.
#[derive(Default)]
struct Arrivals {
    first: Option<Instant>,
    last: Option<Instant>,
    count: usize,
    body: Bytes,
}

type Shared = Arc<Mutex<Arrivals>>;

/// Delivers about `count` events, to one endpoint and to many together.
pub(crate) async fn measure(system: &System, time: Duration, count: usize, report: &mut Report) {
    for (what, endpoints, under_way) in [
        ("one endpoint", 1, TO_ONE),
        ("100 endpoints together", MANY, TO_ALL),
    ] {
        let delivered = delivered(system, count / endpoints, endpoints).await;
        let requests = Arc::new(vec![load::post("/", "", &delivered.body)]);
        let bare = load::run(delivered.receiver, under_way, time, "200", requests).await;
        assert_eq!(bare.other, 0, "the receiver takes everything");
        let pair = (delivered.rate, bare.rate());
        let what = format!("webhook deliveries to {what}, over a bare client's requests");
        report.rate(&what, &[pair], "0.25");
    }
}

/// The result of the deliveries, and their receiver.
pub(crate) struct Delivered {
    /// Deliveries per second.
    pub(crate) rate: f64,
    receiver: SocketAddr,
    /// The body of one of them.
    body: String,
}

/// Delivers `contacts` contacts to each of the endpoints.
pub(crate) async fn delivered(system: &System, contacts: usize, endpoints: usize) -> Delivered {
    let (org, key) = system.organization().await;
    let arrivals = Shared::default();
    let router = axum::Router::new()
        .fallback(arrived)
        .with_state(arrivals.clone());
    let addr = receive(router).await;
    let mut connection = Connection::open(system.addr()).await;
    for nth in 0..endpoints {
        let url = format!("http://{addr}/{nth}");
        let hook = json!({ "url": url, "events": ["contact.created"] });
        let request = load::post("/api/v1/webhooks", &key, &hook.to_string());
        connection.send_for_body(&request).await;
    }
    import_contacts(system, &org, contacts).await;
    let end = Instant::now() + TIMEOUT;
    let (rate, body) = loop {
        assert!(Instant::now() < end, "every delivery arrives");
        if let Some(measured) = measured(&arrivals, contacts * endpoints) {
            break measured;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    Delivered {
        rate,
        receiver: addr,
        body: std::str::from_utf8(&body).expect("JSON").to_owned(),
    }
}

/// The rate from the first to the last once all have arrived, and a body.
fn measured(arrivals: &Shared, count: usize) -> Option<(f64, Bytes)> {
    let arrivals = arrivals.lock().expect("a lock");
    let took = arrivals.last? - arrivals.first?;
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are small")]
    let rate = arrivals.count as f64 / took.as_secs_f64();
    (arrivals.count >= count).then(|| (rate, arrivals.body.clone()))
}

async fn arrived(State(arrivals): State<Shared>, body: Bytes) {
    let at = Instant::now();
    let mut arrivals = arrivals.lock().expect("a lock");
    arrivals.first.get_or_insert(at);
    arrivals.last = Some(at);
    arrivals.count += 1;
    arrivals.body = body;
}
