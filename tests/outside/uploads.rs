//! Uploads that go on: they end with their key, and end in any case.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use harness::{Client, Organization, System, eventually};
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connections::told;
use super::ndjson;
use crate::system;

const CONTACTS: &str = "/api/v1/records/contacts";
const NDJSON: &str = "application/x-ndjson";
const SOON: Duration = Duration::from_secs(20);

/// An upload in progress.
pub(super) struct Upload {
    pub(super) lines: mpsc::UnboundedSender<String>,
    response: Response,
    answers: String,
}

impl Upload {
    /// Starts one with a line.
    pub(super) async fn begin(client: &Client, first: &str) -> Self {
        let (lines, coming) = mpsc::unbounded_channel();
        let coming = futures::stream::unfold(coming, async |mut coming| {
            let line: String = coming.recv().await?;
            Some((Ok::<_, std::io::Error>(line), coming))
        });
        send(&lines, first);
        let request = client.request(Method::POST, CONTACTS);
        let request = request.header("content-type", NDJSON);
        let sent = request.body(Body::wrap_stream(coming.boxed())).send();
        let response = timeout(SOON, sent).await.expect("an answer in time");
        Self {
            lines,
            response: response.expect("an answer"),
            answers: String::new(),
        }
    }

    /// The next line of the response; `None` at the end, or if it breaks off.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.answers.find('\n') {
                let line: String = self.answers.drain(..=end).collect();
                return Some(serde_json::from_str(&line).expect("JSON"));
            }
            let chunk = timeout(SOON, self.response.chunk()).await;
            let chunk = chunk.expect("a line in time").ok().flatten()?;
            self.answers
                .push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }
}

pub(super) fn send(lines: &mpsc::UnboundedSender<String>, id: &str) {
    let line = json!({"id": id, "email": "a@b.c"});
    // Once the upload has ended, there is no receiver.
    let _ = lines.send(format!("{line}\n"));
}

async fn ids(org: &Organization<'_>) -> Vec<String> {
    let csv = super::exports::position_of("contacts", org).await;
    let csv = org.admin.get_at("/api/export/contacts", &csv).await.text();
    let ids = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next());
    let mut ids: Vec<_> = ids.map(str::to_owned).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn an_answer_that_begins_early_ends_with_the_last_position_as_a_trailer() {
    let system = system().await;
    let org = system.organization().await;
    let mut client = TcpStream::connect(system.addr()).await.unwrap();
    let head = format!(
        "POST {CONTACTS} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: \
         {NDJSON}\r\nte: trailers\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        system.addr(),
        org.key
    );
    let line = "{\"id\":\"a\",\"email\":\"a@b.c\"}\n";
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(chunk.as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.contains("created") {
        let mut piece = [0; 1024];
        let read = timeout(SOON, client.read(&mut piece)).await.unwrap();
        let read = read.unwrap();
        assert!(read > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    client.write_all(b"0\r\n\r\n").await.unwrap();
    client.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\ntrailer: waypost-position"), "{head}");
    assert!(head.contains("\r\nwaypost-position: "), "{head}");
    assert!(body.contains("\r\n0\r\nwaypost-position: "), "{body}");
    assert!(body.ends_with("\r\n\r\n"), "{body}");
}

#[tokio::test]
async fn an_upload_ends_with_its_key() {
    let org = system().await.organization().await;
    let terms = json!({"name": "writer", "scopes": ["records:write"]});
    let (client, made) = org.unused_key(&terms).await;
    let mut upload = Upload::begin(&client, "a").await;
    assert_eq!(upload.next().await.unwrap()["status"], "created");
    send(&upload.lines, "b");
    assert_eq!(upload.next().await.unwrap()["status"], "created");
    let path = format!("/api/v1/keys/{}", made["keyId"].as_str().unwrap());
    org.admin.delete(&path).await.ok(204);
    let revoked = Instant::now();
    let last = upload.next().await.expect("a reason");
    assert_eq!(last["line"], 3, "{last}");
    let error = last["error"].as_str().unwrap();
    assert!(error.contains("no longer valid"), "{error}");
    assert!(
        revoked.elapsed() < Duration::from_secs(2),
        "{:?}",
        revoked.elapsed()
    );
    send(&upload.lines, "c");
    assert_eq!(upload.next().await, None);
    assert_eq!(ids(&org).await, ["a", "b"]);
}

#[tokio::test]
async fn an_upload_ends_when_its_key_expires() {
    let org = system().await.organization().await;
    let end = chrono::Utc::now() + chrono::TimeDelta::seconds(8);
    let terms = json!({"name": "writer", "scopes": ["records:write"], "expiresAt": end});
    let (client, _) = org.unused_key(&terms).await;
    let mut upload = Upload::begin(&client, "a").await;
    assert_eq!(upload.next().await.unwrap()["status"], "created");
    let last = upload.next().await.expect("a reason");
    assert!(last["error"].is_string(), "{last}");
    let late = chrono::Utc::now() - end;
    assert!((0..1_500).contains(&late.num_milliseconds()), "{late}");
}

fn lines(count: u64) -> String {
    let line = |nth| json!({"id": format!("c{nth}"), "email": "a@b.c"});
    ndjson((1..=count).map(line))
}

/// Asserts that `taken` lines were accepted and the next one reports why no more were.
async fn takes(client: &Client, sent: u64, taken: u64, why: &str) {
    let answer = client.post_bytes(CONTACTS, NDJSON, lines(sent)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, answers) = answers.split_last().unwrap();
    assert_eq!(answers.len() as u64, taken, "{last}");
    assert!(answers.iter().all(|answer| answer["id"].is_string()));
    assert_eq!(last["line"], taken + 1);
    let error = last["error"].as_str().expect("a reason");
    assert!(error.contains(why), "{error}");
}

#[tokio::test]
async fn lines_count_against_the_limit_of_their_key() {
    let settings = [
        ("WAYPOST_UPLOAD_LINES_COUNTED", "10"),
        ("WAYPOST_UPLOAD_LINES", "50"),
        ("WAYPOST_UPLOAD_BYTES", "100000"),
    ];
    let system = System::start(system().await.shape(), &settings).await;
    let org = system.organization().await;
    let terms = json!({"name": "writer", "scopes": ["records:write"], "rateLimit": 3});
    let (client, _) = org.unused_key(&terms).await;
    takes(&client, 40, 30, "limit of this key").await;
    client
        .post_bytes(CONTACTS, NDJSON, lines(1))
        .await
        .error(429);
    takes(&org.admin, 60, 50, "at most 50 lines").await;
    let rows: Vec<String> = (1..=50).map(|nth| format!("c{nth},a@b.c")).collect();
    let table = format!("id,email\n{}\n", rows.join("\n"));
    let answer = org.admin.post_bytes(CONTACTS, "text/csv", table).await;
    assert_eq!(answer.text().matches("unchanged").count(), 50);
    assert_eq!(answer.text().lines().count(), 50, "{}", answer.text());
    let long = json!({"id": "long", "email": "x".repeat(150_000)});
    let answer = org
        .admin
        .post_bytes(CONTACTS, NDJSON, format!("{long}\n"))
        .await;
    assert!(
        answer.text().contains("at most 100000 bytes"),
        "{}",
        answer.text()
    );
    assert_eq!(ids(&org).await.len(), 50);
}

#[tokio::test]
async fn what_uploads_hold_in_memory_is_bounded_with_all_bodies() {
    const ALL: usize = 400_000;
    // One client gets a fifth.
    let unfinished = "x".repeat(ALL / 5 - 1_000);
    let settings = [("WAYPOST_BODY_MEMORY_BYTES", "400000")];
    let system = System::start(system().await.shape(), &settings).await;
    let org = system.organization().await;
    let held = async || told(&system, "waypost_http_body_bytes").await;
    let mut upload = Upload::begin(&org.admin, "a").await;
    assert_eq!(upload.next().await.unwrap()["status"], "created");
    upload.lines.send(unfinished.clone()).expect("sent");
    eventually("the line to be held", async || {
        (held().await >= 78_000.0).then_some(())
    })
    .await;
    // One line, so that nothing is answered before all of it has arrived.
    let long = ndjson([json!({"id": "long", "email": "x".repeat(30_000)})]);
    let refused = org.admin.post_bytes(CONTACTS, NDJSON, long).await;
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(refused.error(503).contains("too many request bodies"));
    // It continues once there is room, and the memory of written lines is released.
    upload.lines.send("\n".to_owned()).expect("sent");
    let answer = upload.next().await.expect("an answer");
    assert!(answer["error"].is_string(), "{answer}");
    let taken = org.admin.post_bytes(CONTACTS, NDJSON, lines(1_000)).await;
    assert_eq!(taken.status, 200);
    assert_eq!(taken.text().matches("created").count(), 1_000);
    drop(upload);
    eventually("nothing to be held", async || {
        (held().await == 0.0).then_some(())
    })
    .await;
}
