use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use futures::stream;
use http_body_util::BodyExt as _;
use schemas::AggregateType;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{Answer, TestApi};

const PATH: &str = "/api/v1/records/contacts";
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

async fn send(api: &TestApi, body: impl Into<Body>) -> Answer {
    api.send_with("POST", PATH, &[NDJSON], body).await
}

fn statuses(answer: &Answer) -> Vec<Value> {
    answer
        .lines()
        .into_iter()
        .map(|line| line["status"].clone())
        .collect()
}

/// A body of lines that are sent one by one.
fn interactive() -> (mpsc::Sender<io::Result<String>>, Body) {
    let (lines, pieces) = mpsc::channel(1);
    let body = Body::from_stream(stream::unfold(pieces, async |mut pieces| {
        let piece: io::Result<String> = pieces.recv().await?;
        Some((piece, pieces))
    }));
    (lines, body)
}

/// The place in the log that headers or trailers name.
fn sequence(api: &TestApi, headers: &HeaderMap) -> u64 {
    let position = headers["waypost-position"].to_str().unwrap();
    let position = api.commands.log().parse_position(position).unwrap();
    position.sequence()
}

#[tokio::test]
async fn every_line_has_its_answer() {
    let api = TestApi::open().await;
    let body = concat!(
        "{\"id\": \"a\", \"firstName\": \"Ada\"}\n",
        "\n",
        "{\"id\": \"b\"}\n",
        "nonsense\n",
        "{\"id\": \"a\", \"firstName\": \"Ada\"}\r\n",
        "{\"id\": \"a\", \"firstName\": \"Eve\"}\n",
        "[1]\n",
        "{\"id\": \"c\", \"firstName\": \"Cleo\"}",
    );
    let answer = send(&api, body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    let lines = answer.lines();
    assert_eq!(lines[0], json!({"line": 1, "id": "a", "status": "created"}));
    assert_eq!(lines[1]["line"], 3);
    assert!(
        lines[1]["error"].as_str().unwrap().starts_with("email: "),
        "{lines:?}"
    );
    assert_eq!(lines[2]["line"], 4);
    assert_eq!(
        lines[3],
        json!({"line": 5, "id": "a", "status": "unchanged"})
    );
    assert_eq!(lines[4], json!({"line": 6, "id": "a", "status": "updated"}));
    assert!(lines[5]["error"].is_string());
    assert_eq!(lines[6], json!({"line": 8, "id": "c", "status": "created"}));
    assert_eq!(lines.len(), 7);

    let a = api.events(AggregateType::Contact, "a").await;
    let c = api.events(AggregateType::Contact, "c").await;
    assert_eq!((a.len(), c.len()), (2, 1));
    let position = sequence(&api, &answer.headers);
    assert_eq!(position, a[1].sequence.max(c[0].sequence));
}

#[tokio::test]
async fn thousands_of_lines_are_answered_in_order_and_repeatable() {
    let api = TestApi::open().await;
    let line = |nth: usize| format!("{{\"id\": \"c{nth}\", \"firstName\": \"N{nth}\"}}\n");
    let body: String = (0..2_500).map(line).collect();
    let answer = send(&api, body.clone()).await;
    let numbers: Vec<_> = answer
        .lines()
        .iter()
        .map(|line| line["line"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=2_500).map(Some).collect::<Vec<_>>());
    assert!(
        statuses(&answer).iter().all(|status| status == "created"),
        "{}",
        answer.body
    );
    assert!(answer.position().is_some());
    let again = send(&api, body).await;
    assert!(statuses(&again).iter().all(|status| status == "unchanged"));
}

#[tokio::test]
async fn answers_come_before_the_request_has_ended() {
    let api = TestApi::open().await;
    let (lines, body) = interactive();
    lines
        .send(Ok("{\"id\": \"a\", \"firstName\": \"A\"}\n".to_owned()))
        .await
        .unwrap();
    let asking = api.open_stream(PATH, &[NDJSON], body);
    let mut answer = asking.await;
    assert_eq!(answer.next().await.unwrap()["id"], "a");
    lines
        .send(Ok("{\"id\": \"b\", \"firstName\": \"B\"}\n".to_owned()))
        .await
        .unwrap();
    assert_eq!(answer.next().await.unwrap()["id"], "b");
    drop(lines);
    assert_eq!(answer.next().await, None);
}

#[tokio::test]
async fn an_upload_that_comes_late_has_its_position_in_the_head() {
    let api = TestApi::open().await;
    let late = stream::once(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok::<_, io::Error>("{\"id\": \"a\", \"firstName\": \"A\"}\n")
    });
    let answer = send(&api, Body::from_stream(late)).await;
    assert_eq!(statuses(&answer), ["created"]);
    let a = api.events(AggregateType::Contact, "a").await;
    assert_eq!(sequence(&api, &answer.headers), a[0].sequence);
}

#[tokio::test]
async fn an_answer_that_begins_before_the_first_line_has_a_position_and_ends_with_the_last() {
    let api = TestApi::open().await;
    let (lines, body) = interactive();
    let response = api.open_response(PATH, &[NDJSON], body).await;
    assert_eq!(response.headers()["trailer"], "waypost-position");
    let begun = sequence(&api, response.headers());
    let line = "{\"id\": \"a\", \"firstName\": \"A\"}\n";
    lines.send(Ok(line.to_owned())).await.unwrap();
    drop(lines);
    let answer = response.into_body().collect().await.unwrap();
    let ended = sequence(&api, answer.trailers().expect("trailers"));
    let a = api.events(AggregateType::Contact, "a").await;
    assert_eq!(ended, a[0].sequence);
    assert!(begun < ended, "{begun} {ended}");
}

#[tokio::test]
async fn an_upload_with_more_answers_than_are_held_ends_with_its_position() {
    let api = TestApi::open().await;
    // The longest ids, so that few lines have many bytes of answers.
    let id = |nth: usize| format!("{nth:0>128}");
    let line = |nth| format!("{{\"id\": \"{}\", \"firstName\": \"N\"}}\n", id(nth));
    let body: String = (0..8_000).map(line).collect();
    let response = api.open_response(PATH, &[NDJSON], body.into()).await;
    let begun = sequence(&api, response.headers());
    let answer = response.into_body().collect().await.unwrap();
    let ended = sequence(&api, answer.trailers().expect("trailers"));
    assert!(begun <= ended, "{begun} {ended}");
    for nth in (999..8_000).step_by(1_000) {
        let written = api.events(AggregateType::Contact, &id(nth)).await;
        assert!(written[0].sequence <= ended, "{nth}");
    }
    assert!(answer.to_bytes().len() > 1024 * 1024);
}

#[tokio::test]
async fn an_upload_of_which_nothing_is_written_has_a_position_too() {
    let api = TestApi::open().await;
    for body in ["", "nonsense\n"] {
        let answer = send(&api, body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.position().is_some(), "{body}");
    }
}

#[tokio::test]
async fn writers_that_meet_on_one_record_all_get_an_answer() {
    let api = TestApi::open().await;
    let line = |who, nth| format!("{{\"id\": \"c{nth}\", \"firstName\": \"W{who}\"}}\n");
    let body = |who: usize| {
        let lines: Vec<String> = (0..20).map(|nth| line(who, nth)).collect();
        lines.concat()
    };
    let sent = (0..4).map(|who| send(&api, body(who)));
    for answer in futures::future::join_all(sent).await {
        assert_eq!(answer.lines().len(), 20);
        assert!(
            answer.lines().iter().all(|line| line["status"].is_string()),
            "{}",
            answer.body
        );
    }
}
