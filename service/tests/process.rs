//! What a process does around its router: settings, pools, serving, ending.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use clap::Parser;
use service::settings::{CommonSettings, DatabaseSettings, EdgeSettings, HttpSettings, LogFormat};
use service::{Secret, database, edge, listen, serve, telemetry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    common: CommonSettings,
    #[command(flatten)]
    http: HttpSettings,
    #[command(flatten)]
    database: DatabaseSettings,
}

fn parse(arguments: &[&str]) -> Program {
    Program::try_parse_from([&["program"], arguments].concat()).unwrap()
}

#[test]
fn settings_come_together_and_hide_what_is_secret() {
    let url = "postgres://waypost:hunter2@db/waypost";
    let program = parse(&[
        "--database-url",
        url,
        "--shutdown",
        "0.5",
        "--log-format",
        "json",
    ]);
    assert_eq!(program.common.log_format, LogFormat::Json);
    assert_eq!(program.http.shutdown, Duration::from_millis(500));
    assert_eq!(program.database.required_url().unwrap().expose(), url);
    assert!(!format!("{program:?}").contains("hunter2"));
}

#[test]
fn a_setting_of_nothing_is_not_set() {
    let program = parse(&["--database-url", ""]);
    let missing = program.database.required_url().unwrap_err().to_string();
    assert!(missing.starts_with("DATABASE_URL is not set"), "{missing}");
    assert!(database::connect(&program.database).is_err());
}

#[test]
fn a_bad_duration_is_refused() {
    for bad in ["soon", "-1", "1e400"] {
        let arguments = ["program", "--shutdown", bad];
        assert!(Program::try_parse_from(arguments).is_err(), "{bad}");
    }
}

#[test]
fn telemetry_may_begin_twice() {
    let settings = parse(&["--log", "warn"]).common;
    telemetry::init(&settings).unwrap();
    telemetry::init(&settings).unwrap();
}

#[tokio::test]
async fn a_listening_process_may_open_as_many_files_as_the_system_allows() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let low = Rlimit {
        current: Some(512),
        maximum,
    };
    setrlimit(Resource::Nofile, low).unwrap();
    listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    assert_eq!(getrlimit(Resource::Nofile).current, maximum);
}

#[tokio::test]
async fn a_database_that_is_away_is_unavailable() {
    // Nothing listens on port 9: the connection is refused.
    let mut settings = parse(&["--database-url", "postgres://nobody@127.0.0.1:9/none"]).database;
    settings.acquire_timeout = Duration::from_millis(100);
    let pool = database::connect(&settings).unwrap();
    let error = sqlx::query("SELECT 1").execute(&pool).await.unwrap_err();
    assert!(database::is_unavailable(&error), "{error}");
    assert_eq!(service::HttpError::from(error).status, 503);
}

#[tokio::test]
async fn the_reading_pool_cannot_write() {
    let mut settings = parse(&[]).database;
    settings.url = std::env::var("DATABASE_URL").ok().map(Secret::new);
    settings.read_url = None;
    let pool = database::connect_read_only(&settings).unwrap();
    let write = sqlx::query("CREATE TEMPORARY TABLE of_a_test (id int)");
    let error = write.execute(&pool).await.unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(!database::is_unavailable(&error));
}

/// A connection to a router that is served.
async fn client_of(
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
) -> (TcpStream, tokio::task::JoinHandle<()>) {
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let edge = EdgeSettings::default();
        serve(listener, router, shutdown, grace, edge)
            .await
            .unwrap();
    });
    (TcpStream::connect(addr).await.unwrap(), server)
}

/// A client that has sent a request to `/slow`, which answers once `go` is notified.
async fn slow_request(
    shutdown: CancellationToken,
    go: Arc<Notify>,
    grace: Duration,
) -> (TcpStream, tokio::task::JoinHandle<()>) {
    let begun = Arc::new(Notify::new());
    let router = {
        let begun = begun.clone();
        let slow = move || async move {
            begun.notify_one();
            go.notified().await;
            "done"
        };
        edge(Router::new().route("/slow", get(slow)))
    };
    let (mut client, server) = client_of(router, shutdown, grace).await;
    let request = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(request).await.unwrap();
    begun.notified().await;
    (client, server)
}

#[tokio::test]
async fn a_request_under_way_is_finished_at_shutdown() {
    let (shutdown, go) = (CancellationToken::new(), Arc::new(Notify::new()));
    let (mut client, server) =
        slow_request(shutdown.clone(), go.clone(), Duration::from_mins(1)).await;
    shutdown.cancel();
    go.notify_one();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("done"), "{answer}");
    server.await.unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_ever() {
    let (shutdown, never) = (CancellationToken::new(), Arc::new(Notify::new()));
    let (_client, server) = slow_request(shutdown.clone(), never, Duration::from_millis(50)).await;
    shutdown.cancel();
    server.await.unwrap();
}

/// Like a proxy: it sends the body after the response, and reads the response after that.
#[tokio::test]
async fn an_answer_given_before_the_body_came_is_not_cut_off() {
    let router = edge(Router::new().route("/refused", post(|| async { StatusCode::UNAUTHORIZED })));
    let shutdown = CancellationToken::new();
    let (mut client, server) = client_of(router, shutdown.clone(), Duration::ZERO).await;
    let head =
        b"POST /refused HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
    client.write_all(head).await.unwrap();
    client.readable().await.unwrap();
    for _ in 0..100 {
        client.write_all(&[b'x'; 1_000]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    drop(client);
    shutdown.cancel();
    server.await.unwrap();
}
