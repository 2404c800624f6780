//! Clients that are slow, silent or greedy, and responses sent before the body arrives.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use harness::{PASSWORD, System, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{SHAPE, system};

/// A connection, as bytes.
struct Raw(TcpStream);

/// A response's head and body.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    fn says_close(&self) -> bool {
        let head = self.head.to_ascii_lowercase();
        head.contains("\r\nconnection: close\r\n")
    }

    fn error(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["error"].as_str().unwrap().to_owned()
    }
}

impl Raw {
    async fn to(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        Answer { head, body }
    }

    /// Reads everything until the other side closes, in whatever way.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        String::from_utf8(rest).unwrap()
    }
}

fn post(path: &str, headers: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n\r\n"
    )
}

/// The system's address, and that of the process that handles commands.
fn doors(system: &System) -> Vec<SocketAddr> {
    let clients = system.clients();
    let commands = clients
        .iter()
        .filter(|(name, _)| matches!(*name, "waypost" | "command-api"));
    let commands = commands.map(|(_, client)| {
        let addr = client.base().trim_start_matches("http://");
        addr.parse().unwrap()
    });
    std::iter::once(system.addr()).chain(commands).collect()
}

/// The sum of a metric over all processes, its labels ignored.
pub(super) async fn told(system: &System, metric: &str) -> f64 {
    let mut sum = 0.0;
    for (_, client) in system.clients() {
        // A full process may refuse this connection, or shed the one that it would come over.
        let metrics = eventually("metrics", async || {
            let request = client.request(reqwest::Method::GET, "/metrics");
            let answer = harness::Answer::or_error(request).await.ok()?;
            answer.status.is_success().then(|| answer.text())
        })
        .await;
        let of_it = metrics.lines().filter(|line| line.starts_with(metric));
        let values = of_it.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        sum += values.sum::<f64>();
    }
    sum
}

/// As most HTTP clients send it: the head in one packet, the body in another.
#[tokio::test]
async fn a_client_that_is_refused_before_its_body_arrives_can_continue() {
    let system = system().await;
    let org = system.organization().await;
    let key_of = async |terms: Value| {
        let (client, made) = org.unused_key(&terms).await;
        // Uses up a limit of one.
        client.get("/api/v1/workflows").await.error(403);
        format!(
            "Authorization: Bearer {}\r\n",
            made["key"].as_str().unwrap()
        )
    };
    let limited = json!({"name": "once", "scopes": ["workflows:trigger"], "rateLimit": 1});
    let other = json!({"name": "other", "scopes": ["read:orders"]});
    let refused = [
        (String::new(), "401"),
        (key_of(limited).await, "429"),
        (key_of(other).await, "403"),
    ];
    for door in doors(system) {
        for (key, status) in &refused {
            let mut client = Raw::to(door).await;
            let headers = format!("{key}Content-Length: 20");
            client
                .send(post("/api/v1/workflows/any/trigger", &headers))
                .await;
            let answer = client.answer().await;
            assert_eq!(answer.status(), *status, "{}", answer.head);
            // Behind the proxy, where each request has its own connection.
            if answer.says_close() {
                assert_eq!(client.rest().await, "");
                assert_eq!(door, system.addr(), "only the proxy needs it");
                continue;
            }
            client.send(b"{\"number\": 12345678}").await;
            client
                .send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                .await;
            assert_eq!(client.answer().await.status(), "200");
        }
    }
}

#[tokio::test]
async fn unfinished_sign_ins_hold_nothing_for_ever_and_nobody_up() {
    let settings = [("WAYPOST_BODY_SECONDS", "2"), ("WAYPOST_LOG", "warn")];
    let system = System::start(SHAPE, &settings).await;
    let person = system.person("Pat").await;
    let mut strangers = Vec::new();
    for _ in 0..400 {
        let mut stranger = Raw::to(system.addr()).await;
        stranger
            .send(post("/auth/login", "Content-Length: 16000"))
            .await;
        stranger.send(vec![b'x'; 15_000]).await;
        strangers.push(stranger);
    }
    eventually("bytes of bodies are held", async || {
        (told(&system, "waypost_http_body_bytes").await > 0.0).then_some(())
    })
    .await;
    let client = system.client();
    let credentials = json!({"email": person.email, "password": PASSWORD});
    let begun = Instant::now();
    client.post("/auth/login", &credentials).await.ok(200);
    assert!(begun.elapsed() < Duration::from_secs(10));
    for stranger in &mut strangers {
        let answer = stranger.answer().await;
        assert_eq!(answer.status(), "408", "{}", answer.head);
        assert!(answer.says_close(), "{}", answer.head);
        assert!(answer.error().contains("too slowly"), "{}", answer.body);
    }
    let nothing = async || {
        let held = told(&system, "waypost_http_body_bytes").await;
        (held == 0.0).then_some(())
    };
    eventually("no bytes of bodies are held", nothing).await;
    let given_up = told(&system, "waypost_http_timeouts_total{kind=\"body\"}").await;
    assert!(given_up >= 400.0, "{given_up}");
}

#[tokio::test]
async fn what_anybody_may_send_has_to_be_small() {
    let client = system().await.client();
    let long = "x".repeat(20_000);
    for path in [
        "/auth/login",
        "/auth/register",
        "/auth/otp/send",
        "/auth/otp/verify",
    ] {
        let answer = client.post(path, &json!({"email": long})).await;
        assert!(answer.error(413).contains("16384"), "{path}");
    }
}

#[tokio::test]
async fn a_silent_connection_and_a_half_head_are_given_up() {
    let settings = [
        ("WAYPOST_HEAD_SECONDS", "0.3"),
        ("WAYPOST_SILENT_SECONDS", "0.6"),
        ("WAYPOST_IDLE_SECONDS", "0.6"),
    ];
    let system = System::start(SHAPE, &settings).await;
    for (_, client) in system.clients() {
        let addr: SocketAddr = client.base().trim_start_matches("http://").parse().unwrap();
        assert_eq!(Raw::to(addr).await.rest().await, "");
        let mut half = Raw::to(addr).await;
        half.send("POST /auth/login HTTP/1.1\r\nHo").await;
        let answer = half.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.ends_with('}'), "{answer}");
        let mut idle = Raw::to(addr).await;
        idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(idle.answer().await.status(), "200");
        assert_eq!(idle.rest().await, "");
    }
    for kind in ["head", "idle"] {
        let metric = format!("waypost_http_timeouts_total{{kind=\"{kind}\"}}");
        assert!(told(&system, &metric).await > 0.0, "{kind}");
    }
}

#[tokio::test]
async fn a_stalled_body_fails_a_trigger_and_cuts_an_import_off_after_its_results() {
    // Longer than the pause after which an import is answered before its end.
    let system = System::start(SHAPE, &[("WAYPOST_BODY_SECONDS", "2")]).await;
    let org = system.organization().await;
    let terms = json!({"name": "n", "scopes": ["records:write", "workflows:trigger"]});
    let (_, key) = org.unused_key(&terms).await;
    let key = key["key"].as_str().unwrap().to_owned();
    let key_header = format!("Authorization: Bearer {key}\r\n");

    let mut trigger = Raw::to(system.addr()).await;
    let headers = format!("{key_header}Content-Length: 100");
    trigger
        .send(post("/api/v1/workflows/any/trigger", &headers))
        .await;
    trigger.send("{\"half\":").await;
    let answer = trigger.answer().await;
    assert_eq!(answer.status(), "400", "{}", answer.head);
    assert!(answer.error().contains("too slowly"), "{}", answer.body);

    let mut import = Raw::to(system.addr()).await;
    let head = format!(
        "POST /api/v1/records/contacts HTTP/1.1\r\nHost: x\r\n{key_header}\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    import.send(head).await;
    let line = format!("{}\n", json!({"id": "c1", "email": "one@people.example"}));
    import.send(format!("{:x}\r\n{line}\r\n", line.len())).await;
    let head = import.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let rest = import.rest().await;
    assert!(rest.contains("\"created\""), "{rest}");
    // No part looks like the whole.
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn a_process_takes_so_many_connections_and_opens_again() {
    const MOST: usize = 60;
    let settings = [
        ("WAYPOST_CONNECTIONS", "60"),
        ("WAYPOST_SHED_IDLE_SECONDS", "600"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let addr = *doors(&system).last().unwrap();
    let mut crowd = Vec::new();
    let refusal = loop {
        let mut client = Raw::to(addr).await;
        client
            .send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await;
        let answer = client.answer().await;
        if answer.status() != "200" {
            break answer;
        }
        crowd.push(client);
        assert!(crowd.len() <= MOST);
    };
    assert_eq!(refusal.status(), "503");
    assert!(refusal.says_close(), "{}", refusal.head);
    assert!(refusal.head.contains("retry-after: "), "{}", refusal.head);
    assert!(refusal.error().contains("too many connections"));
    drop(crowd);
    eventually("connections are taken again", async || {
        let mut client = Raw::to(addr).await;
        client
            .send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await;
        let answer = client.rest().await;
        answer.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    let refused = told(&system, "waypost_http_connections_refused_total").await;
    assert!(refused > 0.0, "{refused}");
}

#[tokio::test]
async fn who_comes_to_a_full_process_gets_the_place_of_who_rests() {
    const MOST: usize = 60;
    let settings = [
        ("WAYPOST_CONNECTIONS", "60"),
        ("WAYPOST_SHED_IDLE_SECONDS", "0.2"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let addr = *doors(&system).last().unwrap();
    let greets = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    // One in the middle of a request, and many that send nothing more.
    let mut busy = Raw::to(addr).await;
    busy.send(post("/auth/login", "Content-Length: 20")).await;
    let mut crowd = Vec::new();
    for _ in 0..3 * MOST {
        let mut client = Raw::to(addr).await;
        client.send(greets).await;
        crowd.push(client);
    }
    let mut newcomer = eventually("a newcomer to be let in", async || {
        let mut client = Raw::to(addr).await;
        client.send(greets).await;
        // A refused connection may simply be closed.
        let answer = client.0.peek(&mut [0; 12]).await.ok()?;
        if answer == 0 {
            return None;
        }
        let answer = client.answer().await;
        (answer.status() == "200").then_some(client)
    })
    .await;
    newcomer.send(greets).await;
    assert_eq!(newcomer.answer().await.status(), "200");
    // A connection in use keeps its place.
    busy.send(b"{\"number\": 12345678}").await;
    let answer = busy.answer().await;
    assert_eq!(answer.status(), "400", "{}", answer.head);
    let shed = told(&system, "waypost_http_connections_shed_total").await;
    assert!(shed > 0.0, "{shed}");
}

/// Behind a proxy each request counts as a connection of its client.
#[tokio::test]
async fn one_address_does_not_get_all_places() {
    let settings = [
        ("WAYPOST_CONNECTIONS", "60"),
        ("WAYPOST_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let addr = *doors(&system).last().unwrap();
    let from = |address: &str| {
        let headers = format!("X-Forwarded-For: {address}\r\nContent-Length: 20");
        post("/auth/login", &headers)
    };
    let mut crowd = Vec::new();
    let refusal = loop {
        let mut client = Raw::to(addr).await;
        // Asked to continue as soon as the body is wanted.
        let head = from("192.0.2.1").replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
        client.send(head).await;
        let said = client.head().await;
        if !said.contains(" 100 ") {
            break said;
        }
        crowd.push(client);
        assert!(crowd.len() < 60, "one address has all places");
    };
    assert!(refusal.contains(" 429 "), "{refusal}");
    assert!(refusal.contains("retry-after: "), "{refusal}");
    let mut other = Raw::to(addr).await;
    other.send(from("192.0.2.2")).await;
    other.send(b"{\"number\": 12345678}").await;
    assert_eq!(other.answer().await.status(), "400");
}
