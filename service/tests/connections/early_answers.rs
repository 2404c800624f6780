//! Responses sent before the body arrived.

use std::time::Duration;

use service::settings::EdgeSettings;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

use super::{Client, millis, post_head, says_close, start};

#[tokio::test]
async fn a_connection_is_usable_after_an_answer_that_was_faster_than_the_body() {
    let mut client = Client::to(start(EdgeSettings::default()).await).await;
    for _ in 0..3 {
        client
            .send(post_head("/refused", "Content-Length: 70000"))
            .await;
        let (head, _) = client.answer().await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        assert!(!says_close(&head), "{head}");
        client.send(vec![b'x'; 70_000]).await;
        client.is_served().await;
    }
}

#[tokio::test]
async fn where_the_body_is_too_long_to_throw_away_the_answer_says_that_it_closes() {
    let addr = start(EdgeSettings {
        drain_bytes: 1_000,
        ..EdgeSettings::default()
    })
    .await;
    for headers in ["Content-Length: 1001", "Transfer-Encoding: chunked"] {
        let mut client = Client::to(addr).await;
        client.send(post_head("/refused", headers)).await;
        let (head, _) = client.answer().await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        assert!(says_close(&head), "{headers}: {head}");
        assert_eq!(client.rest().await, "");
    }
    let mut client = Client::to(addr).await;
    client
        .send(post_head("/refused", "Content-Length: 1000"))
        .await;
    let (head, _) = client.answer().await;
    assert!(!says_close(&head), "{head}");
}

#[tokio::test]
async fn where_no_further_request_is_wanted_nobody_waits_for_the_body() {
    let mut client = Client::to(start(EdgeSettings::default()).await).await;
    let headers = "Content-Length: 10\r\nConnection: close";
    client.send(post_head("/refused", headers)).await;
    let begun = Instant::now();
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_client_gets_a_100_continue_only_where_its_body_is_read() {
    let addr = start(EdgeSettings::default()).await;
    let headers = "Content-Length: 4\r\nExpect: 100-continue";
    let mut refused = Client::to(addr).await;
    refused.send(post_head("/refused", headers)).await;
    let (head, _) = refused.answer().await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    assert!(says_close(&head), "{head}");

    let mut wanted = Client::to(addr).await;
    wanted.send(post_head("/read", headers)).await;
    let mut leave = [0; 25];
    wanted.0.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    wanted.send("body").await;
    let (head, body) = wanted.answer().await;
    assert_eq!(body, "read 4");
    assert!(!says_close(&head), "{head}");
    wanted.is_served().await;
}

#[tokio::test]
async fn a_body_that_never_comes_after_an_early_answer_ends_the_connection() {
    let mut client = Client::to(
        start(EdgeSettings {
            body: millis(100),
            ..EdgeSettings::default()
        })
        .await,
    )
    .await;
    client
        .send(post_head("/refused", "Content-Length: 10"))
        .await;
    client.answer().await;
    assert_eq!(client.rest().await, "");
}
