//! Greedy clients, and bytes that are not a request.

use service::settings::EdgeSettings;
use tokio::io::AsyncReadExt as _;

use super::{Client, post_head, start};

#[tokio::test]
async fn a_client_beyond_the_memory_for_unfinished_bodies_is_asked_to_retry_later() {
    let settings = EdgeSettings {
        body_memory_bytes: 50_000,
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;
    let mut unfinished = Client::to(addr).await;
    unfinished
        .send(post_head(
            "/read",
            "Content-Length: 9001\r\nExpect: 100-continue",
        ))
        .await;
    unfinished.0.read_exact(&mut [0; 25]).await.unwrap();
    unfinished.send(vec![b'x'; 9_000]).await;

    let mut next = Client::to(addr).await;
    let refusal = loop {
        // The bytes of the first one may not have been read yet.
        next.send(post_head("/read", "Content-Length: 5000")).await;
        next.send(vec![b'x'; 5_000]).await;
        let (head, body) = next.answer().await;
        if !head.starts_with("HTTP/1.1 200") {
            break (head, body);
        }
    };
    let (head, body) = refusal;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert!(head.contains("\r\nretry-after: 5\r\n"), "{head}");
    assert!(body.contains("try again"), "{body}");

    unfinished.send("x").await;
    let (_, body) = unfinished.answer().await;
    assert_eq!(body, "read 9001");
    next.send(post_head("/read", "Content-Length: 5000")).await;
    next.send(vec![b'x'; 5_000]).await;
    let (_, body) = next.answer().await;
    assert_eq!(body, "read 5000");
}

#[tokio::test]
async fn connections_beyond_the_bound_get_a_503_and_harm_nobody() {
    let settings = EdgeSettings {
        connections: 3,
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;
    let mut served = Vec::new();
    for _ in 0..3 {
        let mut client = Client::to(addr).await;
        client.is_served().await;
        served.push(client);
    }
    for _ in 0..200 {
        let refusal = Client::to(addr).await.rest().await;
        if !refusal.is_empty() {
            assert!(refusal.starts_with("HTTP/1.1 503"), "{refusal}");
            assert!(refusal.contains("retry-after: "), "{refusal}");
            assert!(refusal.contains(r#"{"error":"#), "{refusal}");
        }
    }
    for client in &mut served {
        client.is_served().await;
    }
    served.pop();
    loop {
        let mut next = Client::to(addr).await;
        next.send("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await;
        if next.rest().await.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_in_the_shape_of_all_errors() {
    let addr = start(EdgeSettings::default()).await;
    let long = format!("GET /ok HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let many = format!("GET /ok HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(200));
    let address = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    for (wrong, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (long, "431"),
        (many, "431"),
        (address, "431"),
    ] {
        let mut client = Client::to(addr).await;
        client.send(wrong).await;
        let answer = client.rest().await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"].is_string(), "{body}");
    }
}
