//! The limit of open files, which belongs to the whole process: this test has one of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use service::settings::EdgeSettings;
use service::{edge, listen, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const TOGETHER: usize = 8;

#[tokio::test]
async fn a_limit_that_was_low_at_the_start_leaves_no_fewer_connections() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let low = Rlimit {
        current: Some(40),
        maximum,
    };
    setrlimit(Resource::Nofile, low).unwrap();
    let all_there = Arc::new(Barrier::new(TOGETHER));
    let route = get(async move || {
        all_there.wait().await;
    });
    let router = edge(Router::new().route("/", route));
    let never = CancellationToken::new();
    let settings = EdgeSettings::default();
    tokio::spawn(serve(listener, router, never, Duration::ZERO, settings));

    let mut requests = JoinSet::new();
    for _ in 0..TOGETHER {
        requests.spawn(async move {
            let mut client = TcpStream::connect(addr).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            client.write_all(request).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        });
    }
    let answers = tokio::time::timeout(Duration::from_secs(30), requests.join_all());
    for answer in answers.await.unwrap() {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
