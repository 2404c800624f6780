//! An ordinary client that records its requests and the responses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;
use reqwest::Method;
use serde_json::Value;

use crate::notes::{Attempt, Came, Complaint, ExpectedEvent, Note, Notes, Outcome};
use crate::upload::Upload;
use hostile::Dice;

/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a download.
const DOWNLOAD: Duration = Duration::from_secs(10);
/// How long a command is retried under its `Idempotency-Key`.
const INSISTS: Duration = Duration::from_secs(20);

/// Percentage of commands that are sent once more though they were answered.
const IMPATIENT: usize = 15;
const SAME: &str = "repeats that were answered as the first was";

/// A command to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) token: String,
    pub(crate) body: Body,
    /// Whether it is sent under an `Idempotency-Key`, and retried until there is an answer.
    pub(crate) keyed: bool,
    pub(crate) expected: Vec<ExpectedEvent>,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    None,
    Json(Value),
    Upload(Upload),
}

/// A complete response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) position: Option<String>,
    /// The path of a list's next page.
    pub(crate) next: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The client that all workers share.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    /// Addresses of second instances, while there are any.
    pub(crate) beside: Mutex<Option<(String, Duty)>>,
    pub(crate) notes: Arc<Notes>,
    root: u64,
    next: AtomicU64,
    over: AtomicBool,
}

/// The requests that a second instance serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Commands,
    Queries,
    Nothing,
}

impl Client {
    pub(crate) fn new(base: &str, root: u64, notes: Arc<Notes>) -> Self {
        // A second provider is not an error: all of this process installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .timeout(TIMEOUT)
            .build()
            .expect("an HTTP client");
        Self {
            http,
            base: base.to_owned(),
            beside: Mutex::default(),
            notes,
            root: root | 1,
            next: AtomicU64::new(1),
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends no new commands: the load ends.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns a number that is unique in this run.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a command, retrying under an `Idempotency-Key` until it is answered, and records the
    /// outcome.
    pub(crate) async fn command(&self, dice: &mut Dice, command: Command) -> Outcome {
        let number = self.number();
        let trace = u128::from(self.root) << 64 | u128::from(number);
        let sent = Instant::now();
        let mut attempts = 0;
        let outcome = loop {
            attempts += 1;
            let answer = self
                .attempt(dice, &command, (number, trace), attempts)
                .await;
            let outcome = outcome(&command, answer);
            let tried_enough = !command.keyed || sent.elapsed() > INSISTS;
            if tried_enough || !matches!(outcome, Outcome::Unknown) {
                break outcome;
            }
            tokio::time::sleep(dice.millis(20..200)).await;
        };
        let (answered, known) = (Utc::now(), Instant::now());
        if command.keyed && dice.chance(IMPATIENT) {
            attempts += 1;
            let names = (number, trace);
            self.again(dice, &command, names, attempts, &outcome).await;
        }
        let request = format!("{} {}", command.method, command.path);
        self.notes.command(Note {
            trace,
            command: command.name,
            request,
            keyed: command.keyed,
            attempts,
            expected: command.expected,
            outcome: outcome.clone(),
            answered,
            sent,
            known,
        });
        outcome
    }

    /// Repeats a command that was answered: the response has to be the same again.
    async fn again(
        &self,
        dice: &mut Dice,
        command: &Command,
        names: (u64, u128),
        attempts: u32,
        first: &Outcome,
    ) {
        let answer = self.attempt(dice, command, names, attempts).await;
        let Outcome::Acknowledged { body, .. } = first else {
            return;
        };
        let same = matches!(command.name, "trigger" | "post record");
        match outcome(command, answer) {
            // A limit may be reached by now, and a token expired.
            Outcome::Unknown | Outcome::Refused { status: 429 | 401 } => {}
            Outcome::Acknowledged { body: second, .. } if !same || second == *body => {
                self.notes.right(SAME);
            }
            other => self.notes.complain(Complaint {
                check: SAME,
                what: format!("{} {}", command.method, command.path),
                expected: body.to_string(),
                found: format!("{other:?}"),
            }),
        }
    }

    async fn attempt(
        &self,
        dice: &mut Dice,
        command: &Command,
        (number, trace): (u64, u128),
        nth: u32,
    ) -> Option<Answer> {
        let base = self.instance(dice, Duty::Commands);
        let span = dice.throw().max(1);
        let mut request = self
            .http
            .request(command.method.clone(), format!("{base}{}", command.path))
            .header("traceparent", format!("00-{trace:032x}-{span:016x}-01"));
        if !command.token.is_empty() {
            request = request.bearer_auth(&command.token);
        }
        if command.keyed {
            request = request.header("idempotency-key", format!("{:x}-{number}", self.root));
        }
        request = match &command.body {
            Body::None => request,
            Body::Json(value) => request
                .header("content-type", "application/json")
                .body(value.to_string()),
            Body::Upload(upload) => upload.put_in(request, nth == 1),
        };
        let sent = Instant::now();
        let answer = whole(request).await;
        let came = match answer.as_ref().map(|answer| answer.status) {
            Some(200..300) => Came::Acknowledged,
            Some(400..500) => Came::Refused,
            _ => Came::Unknown,
        };
        self.notes.attempt(Attempt {
            sent,
            took: sent.elapsed(),
            came,
        });
        answer
    }

    /// Reads, waiting for a position if one is given. `None` without a response.
    pub(crate) async fn read(
        &self,
        dice: &mut Dice,
        token: &str,
        path: &str,
        position: Option<&str>,
    ) -> Option<Answer> {
        let request = self.asking(dice, token, path, position);
        whole(request.timeout(Duration::from_secs(8))).await
    }

    /// Reads a file to its end, pausing before each piece. `None` if it does not complete.
    pub(crate) async fn download(
        &self,
        dice: &mut Dice,
        token: &str,
        path: &str,
        position: Option<&str>,
        pause: Duration,
    ) -> Option<Vec<u8>> {
        let request = self.asking(dice, token, path, position);
        let mut response = request.timeout(DOWNLOAD).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut file = Vec::new();
        while let Some(piece) = response.chunk().await.ok()? {
            file.extend_from_slice(&piece);
            tokio::time::sleep(pause).await;
        }
        Some(file)
    }

    fn asking(
        &self,
        dice: &mut Dice,
        token: &str,
        path: &str,
        position: Option<&str>,
    ) -> reqwest::RequestBuilder {
        let base = self.instance(dice, Duty::Queries);
        let request = self.http.get(format!("{base}{path}")).bearer_auth(token);
        match position {
            Some(position) => request.header("waypost-min-position", position),
            None => request,
        }
    }

    /// Mostly the one address; half of the time a second instance if one is running.
    fn instance(&self, dice: &mut Dice, duty: Duty) -> String {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        match &*beside {
            Some((base, theirs)) if *theirs == duty && dice.chance(50) => base.clone(),
            _ => self.base.clone(),
        }
    }
}

async fn whole(request: reqwest::RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let position = response.headers().get("waypost-position");
    let position = position.and_then(|value| value.to_str().ok().map(str::to_owned));
    let link = response.headers().get("link");
    let next = link.and_then(|link| harness::next_page(link.to_str().ok()?));
    let body = response.bytes().await.ok()?.to_vec();
    Some(Answer {
        status,
        position,
        next,
        body,
    })
}

fn outcome(command: &Command, answer: Option<Answer>) -> Outcome {
    let Some(answer) = answer else {
        return Outcome::Unknown;
    };
    match answer.status {
        200..300 => {
            let body = match command.body {
                Body::Upload(_) => String::from_utf8_lossy(&answer.body).into_owned().into(),
                _ => answer.json(),
            };
            Outcome::Acknowledged {
                position: answer.position,
                body,
            }
        }
        status @ 400..500 => Outcome::Refused { status },
        _ => Outcome::Unknown,
    }
}
