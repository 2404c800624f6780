//! An ordinary tenant: its constant load, and how long it waits.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use chrono::Utc;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::accept::put_workflow;
use crate::export::import_contacts;
use crate::live::{self, Fix, Person};
use crate::load::{self, Connection};
use crate::system::System;
use crate::webhook::receive;

/// Timeout after which a response counts as missing.
const TIMEOUT: Duration = Duration::from_secs(10);
const PERSONS: usize = 10;
const ROWS: usize = 2_000;

/// Requests per second of each kind.
const TRIGGERS: f64 = 40.0;
const CALLS: f64 = 10.0;
const SIGN_INS: f64 = 4.0;
const POSITIONS: f64 = 20.0;
const EXPORTS: f64 = 4.0;

/// The times of one kind of request.
#[derive(Debug)]
pub(crate) struct Felt {
    pub(crate) what: &'static str,
    /// Sorted; what never arrived counts with the whole timeout.
    times: Vec<Duration>,
    /// Wrong or missing responses, with their counts.
    wrong: BTreeMap<String, usize>,
}

impl Felt {
    fn of(what: &'static str, all: Vec<Result<Duration, String>>) -> Self {
        let (mut times, mut wrong) = (Vec::new(), BTreeMap::new());
        for one in all {
            times.push(*one.as_ref().unwrap_or(&TIMEOUT));
            if let Err(told) = one {
                *wrong.entry(told).or_default() += 1;
            }
        }
        times.sort_unstable();
        Self { what, times, wrong }
    }

    /// The time that `percent` of them did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let place = (self.times.len() * percent).div_ceil(100).saturating_sub(1);
        self.times.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn sent(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn wrong(&self) -> usize {
        self.wrong.values().sum()
    }

    /// The wrong responses, as text.
    pub(crate) fn told(&self) -> String {
        let told = self
            .wrong
            .iter()
            .map(|(told, count)| format!("{told} × {count}"));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// When the webhook of each trigger arrived, by its number.
type Arrivals = Arc<Mutex<HashMap<u64, Instant>>>;

/// An organization and some persons, ready to send their load.
pub(super) struct Ordinary {
    base: String,
    key: String,
    /// Each with an address of its own, like real persons.
    clients: Vec<reqwest::Client>,
    persons: Vec<Person>,
    fixes: mpsc::UnboundedReceiver<(Fix, Instant)>,
    arrivals: Arrivals,
    next: u64,
}

impl Ordinary {
    /// Sets everything up.
    pub(super) async fn settle(system: &System) -> Self {
        let (org, key) = system.organization().await;
        import_contacts(system, &org, ROWS).await;
        let arrivals = Arrivals::default();
        let router = Router::new().fallback(arrived).with_state(arrivals.clone());
        let receiver = format!("http://{}", receive(router).await);
        for (name, called) in [("tell", None), ("call", Some(&receiver))] {
            put_workflow(system, &org, name, &definition(name, called)).await;
        }
        let hook = json!({"url": format!("{receiver}/hook"), "events": ["custom.*"]});
        let mut connection = Connection::open(system.addr()).await;
        let request = load::post("/api/v1/webhooks", &key, &hook.to_string());
        connection.send_for_body(&request).await;
        let mut persons = Vec::new();
        for number in 0..PERSONS {
            persons.push(Person::register(system, number).await);
        }
        live::gather(system.addr(), &persons).await;
        let (arrived, fixes) = mpsc::unbounded_channel();
        live::watch(system.addr(), &persons[0].token, arrived).await;
        Self {
            base: format!("http://{}", system.addr()),
            key,
            clients: (0..PERSONS).map(client).collect(),
            persons,
            fixes,
            arrivals,
            next: 0,
        }
    }

    /// Sends its load for a time; returns how long everything took.
    pub(super) async fn load(&mut self, time: Duration) -> Vec<Felt> {
        let first = self.next;
        self.next += 1_000_000;
        let this = &*self;
        let (told, called, signed_in, sent, exported) = tokio::join!(
            paced(TRIGGERS, time, |n| this.trigger("tell", first + n)),
            paced(CALLS, time, |n| this.trigger("call", first + 500_000 + n)),
            paced(SIGN_INS, time, |n| this.sign_in(n)),
            paced(POSITIONS, time, |n| this.send_position(n)),
            paced(EXPORTS, time, |_| this.export()),
        );
        let (hooks, calls) = self.arrived(&told, &called).await;
        let seen = self.seen(&sent).await;
        let times = |all: Vec<Asked>| all.into_iter().map(|one| one.took).collect();
        vec![
            Felt::of("a trigger", times(told)),
            Felt::of("from a trigger to its webhook", hooks),
            Felt::of("from a trigger to the webhook of a run with a call", calls),
            Felt::of("a sign-in", times(signed_in)),
            Felt::of("from a position to the socket", seen),
            Felt::of("an export", times(exported)),
        ]
    }

    fn trigger(&self, workflow: &str, number: u64) -> Asking {
        let url = format!("{}/api/v1/workflows/{workflow}/trigger", self.base);
        let request = self.clients[0].post(url).bearer_auth(&self.key);
        let request = json_body(request, &json!({ "n": number }));
        Asking::of(request, 202, number.to_string())
    }

    fn sign_in(&self, n: u64) -> Asking {
        let nth = usize::try_from(n).unwrap_or_default() % PERSONS;
        let request = self.clients[nth].post(format!("{}/auth/login", self.base));
        let body = json!({"email": live::email(nth), "password": live::PASSWORD});
        Asking::of(json_body(request, &body), 200, String::new())
    }

    fn send_position(&self, n: u64) -> Asking {
        let nth = usize::try_from(n).unwrap_or_default() % PERSONS;
        let person = &self.persons[nth];
        let at = live::written(Utc::now());
        let body = json!({"lat": 53.5, "lng": 10.0, "accuracy": 5, "recorded_at": at});
        let request = self.clients[nth].post(format!("{}/location/update", self.base));
        let request = json_body(request.bearer_auth(&person.token), &body);
        Asking::of(request, 202, format!("{} {at}", person.id))
    }

    fn export(&self) -> Asking {
        let url = format!("{}/api/export/contacts", self.base);
        let request = self.clients[0].get(url).bearer_auth(&self.key);
        Asking::of(request, 200, String::new())
    }

    /// The times from sending a trigger to the webhook's arrival, for two kinds.
    async fn arrived(&self, told: &[Asked], called: &[Asked]) -> (Waited, Waited) {
        let since = |asked: &Asked| {
            let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            let at = arrivals.get(&asked.id.parse().ok()?)?;
            Some(at.saturating_duration_since(asked.due))
        };
        let end = Instant::now() + TIMEOUT;
        let taken = || told.iter().chain(called).filter(|asked| asked.took.is_ok());
        while taken().any(|asked| since(asked).is_none()) && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let all = |asked: &[Asked]| {
            asked
                .iter()
                .map(|asked| waited(asked, since(asked)))
                .collect()
        };
        (all(told), all(called))
    }

    /// The times from sending a position to its arrival on the socket.
    async fn seen(&mut self, sent: &[Asked]) -> Waited {
        let mut seen = HashMap::new();
        let taken: Vec<_> = sent.iter().filter(|asked| asked.took.is_ok()).collect();
        let end = tokio::time::Instant::now() + TIMEOUT;
        while taken.iter().any(|asked| !seen.contains_key(&asked.id)) {
            match tokio::time::timeout_at(end, self.fixes.recv()).await {
                Ok(Some(((id, at), when))) => _ = seen.insert(format!("{id} {at}"), when),
                Ok(None) | Err(_) => break,
            }
        }
        let since = |asked: &Asked| {
            let at = seen.get(&asked.id)?;
            Some(at.saturating_duration_since(asked.due))
        };
        sent.iter()
            .map(|asked| waited(asked, since(asked)))
            .collect()
    }
}

/// The time from a request to the arrival of its effect.
fn waited(asked: &Asked, since: Option<Duration>) -> Result<Duration, String> {
    match (&asked.took, since) {
        (_, Some(since)) => Ok(since),
        (Ok(_), None) => Err("never came".to_owned()),
        (Err(_), None) => Err("not even taken".to_owned()),
    }
}

type Waited = Vec<Result<Duration, String>>;

/// A request to be sent, and the expected status.
struct Asking {
    request: reqwest::RequestBuilder,
    status: u16,
    id: String,
}

/// A request that was sent.
struct Asked {
    id: String,
    due: Instant,
    took: Result<Duration, String>,
}

impl Asking {
    fn of(request: reqwest::RequestBuilder, status: u16, id: String) -> Self {
        Self {
            request,
            status,
            id,
        }
    }

    async fn send(self, due: Instant) -> Asked {
        let answered = async {
            let answer = self.request.timeout(TIMEOUT).send().await?;
            let status = answer.status().as_u16();
            answer.bytes().await?;
            Ok::<_, reqwest::Error>(status)
        };
        let took = match answered.await {
            Ok(status) if status == self.status => Ok(due.elapsed()),
            Ok(status) => Err(status.to_string()),
            Err(error) if error.is_timeout() => Err("no answer".to_owned()),
            Err(_) => Err("cut off".to_owned()),
        };
        Asked {
            id: self.id,
            due,
            took,
        }
    }
}

/// Sends requests at a fixed rate, however long responses take: each has its own due time.
async fn paced(per_second: f64, time: Duration, ask: impl Fn(u64) -> Asking) -> Vec<Asked> {
    let end = Instant::now() + time;
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
    let mut under_way = JoinSet::new();
    let mut n = 0;
    loop {
        let due = ticks.tick().await.into_std();
        if due >= end {
            break;
        }
        under_way.spawn(ask(n).send(due));
        n += 1;
    }
    under_way.join_all().await
}

fn json_body(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

fn client(nth: usize) -> reqwest::Client {
    let from = Ipv4Addr::new(127, 0, 1, u8::try_from(nth + 1).unwrap_or(1));
    let builder = reqwest::Client::builder().no_proxy();
    let client = builder.local_address(IpAddr::from(from)).build();
    client.expect("an HTTP client")
}

fn definition(name: &str, called: Option<&String>) -> Value {
    let tell = json!({"id": "tell", "type": "NOTIFY", "event": name,
        "data": {"n": "{{ trigger.n }}"}});
    let start = |next: &str| json!({"id": "start", "type": "TRIGGER", "next": [next]});
    let steps = match called {
        None => json!([start("tell"), tell]),
        Some(receiver) => json!([start("call"), {"id": "call", "type": "HTTP", "method": "POST",
            "url": format!("{receiver}/step"), "next": ["tell"]}, tell]),
    };
    json!({"name": name, "status": "ACTIVE", "steps": steps})
}

async fn arrived(State(arrivals): State<Arrivals>, uri: Uri, body: Bytes) {
    let at = Instant::now();
    if uri.path() != "/hook" {
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(n) = body["data"]["n"].as_u64() {
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.entry(n).or_insert(at);
    }
}
