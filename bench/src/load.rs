//! A load of HTTP requests over connections that stay open. The client writes prepared bytes and
//! reads no more of a response than it must, so that it takes little of the machine it measures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The results of a load.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Requests answered with the wanted status.
    pub(crate) answered: u64,
    /// Other responses.
    pub(crate) other: u64,
    /// The duration of the load.
    pub(crate) elapsed: Duration,
    /// The latency of each response, sorted.
    pub(crate) latencies: Vec<Duration>,
}

impl Outcome {
    /// Wanted responses per second.
    pub(crate) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench are small")]
        let answered = self.answered as f64;
        answered / self.elapsed.as_secs_f64()
    }

    /// The latency that `percent` of the responses did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let place = self.latencies.len().saturating_sub(1) * percent / 100;
        self.latencies.get(place).copied().unwrap_or_default()
    }
}

/// Sends `requests` in turn, `per_second` over all `connections`, until `time` is over. Returns how
/// many were answered.
pub(crate) async fn run_paced(
    addr: SocketAddr,
    connections: u32,
    per_second: f64,
    time: Duration,
    requests: Arc<Vec<Vec<u8>>>,
) -> u64 {
    let end = Instant::now() + time;
    let between = Duration::from_secs_f64(f64::from(connections) / per_second.max(1.0));
    // A `JoinSet`, so that the workers end if this future is dropped.
    let mut workers = JoinSet::new();
    for worker in 0..connections {
        let requests = requests.clone();
        workers.spawn(async move {
            let mut connection = Connection::open(addr).await;
            let first = tokio::time::Instant::now() + between * worker / connections;
            let mut ticks = tokio::time::interval_at(first, between);
            let mut next = worker as usize;
            let mut answered = 0;
            while Instant::now() < end {
                ticks.tick().await;
                let head = connection.send(&requests[next % requests.len()]).await;
                assert!(head.starts_with('2'), "{head}");
                next += connections as usize;
                answered += 1;
            }
            answered
        });
    }
    workers.join_all().await.into_iter().sum()
}

/// Sends `requests` in turn over `connections` until `time` is over.
pub(crate) async fn run(
    addr: SocketAddr,
    connections: usize,
    time: Duration,
    status: &'static str,
    requests: Arc<Vec<Vec<u8>>>,
) -> Outcome {
    let started = Instant::now();
    let end = started + time;
    let workers: Vec<_> = (0..connections)
        .map(|worker| {
            let requests = requests.clone();
            tokio::spawn(
                async move { work(addr, worker, connections, end, status, &requests).await },
            )
        })
        .collect();
    let mut outcome = Outcome::default();
    for worker in workers {
        let part = worker.await.expect("a worker");
        outcome.answered += part.answered;
        outcome.other += part.other;
        outcome.latencies.extend(part.latencies);
    }
    outcome.elapsed = started.elapsed();
    outcome.latencies.sort_unstable();
    outcome
}

async fn work(
    addr: SocketAddr,
    worker: usize,
    step: usize,
    end: Instant,
    status: &str,
    requests: &[Vec<u8>],
) -> Outcome {
    let mut connection = Connection::open(addr).await;
    let mut outcome = Outcome::default();
    let mut next = worker;
    while Instant::now() < end {
        let sent = Instant::now();
        let answer = connection.send(&requests[next % requests.len()]).await;
        outcome.latencies.push(sent.elapsed());
        if answer.starts_with(status) {
            outcome.answered += 1;
        } else {
            outcome.other += 1;
        }
        next += step;
    }
    outcome
}

/// A connection that stays open.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            buffer: Vec::with_capacity(4096),
        }
    }

    /// Sends a request and returns the response's head, from the status on.
    pub(crate) async fn send(&mut self, request: &[u8]) -> String {
        self.stream.write_all(request).await.expect("sending");
        self.buffer.clear();
        loop {
            let read = self
                .stream
                .read_buf(&mut self.buffer)
                .await
                .expect("an answer");
            assert!(read > 0, "the server closed the connection");
            if let Some(head) = self.whole_answer() {
                return head;
            }
        }
    }

    /// Sends a request that must succeed and returns its JSON response.
    pub(crate) async fn send_for_body(&mut self, request: &[u8]) -> serde_json::Value {
        let head = self.send(request).await;
        assert!(head.starts_with('2'), "{head}");
        self.body()
    }

    /// The JSON body of the last response.
    pub(crate) fn body(&self) -> serde_json::Value {
        let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        serde_json::from_slice(&self.buffer[end.expect("a head") + 4..]).expect("JSON")
    }

    fn whole_answer(&self) -> Option<String> {
        let end = self
            .buffer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&self.buffer[..end]).expect("an ASCII head");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().expect("a length"));
        let whole = self.buffer.len() >= end + 4 + length;
        whole.then(|| head.strip_prefix("HTTP/1.1 ").unwrap_or(head).to_owned())
    }
}

/// A header's value in a response's head.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let values = head.lines().filter_map(|line| line.split_once(": "));
    let mut values = values.filter(|(given, _)| *given == name);
    values.next().map(|(_, value)| value)
}

/// The bytes of a GET; `more` are further header lines, each with its line end.
pub(crate) fn get(path: &str, key: &str, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{more}\r\n")
        .into_bytes()
}

/// The bytes of a JSON POST.
pub(crate) fn post(path: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
