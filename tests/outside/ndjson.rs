//! `/api/v1/records/contacts` with many records in one request.

use harness::{Answer, Organization};
use serde_json::{Value, json};

use super::ndjson;
use crate::system;

const CONTACTS: &str = "/api/v1/records/contacts";
const NDJSON: &str = "application/x-ndjson";

async fn send(org: &Organization<'_>, lines: impl Into<Vec<u8>>) -> Vec<Value> {
    let answer = org.admin.post_bytes(CONTACTS, NDJSON, lines).await;
    answers(&answer)
}

fn answers(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.header("content-type").expect("a type");
    assert!(kind.starts_with(NDJSON), "{kind}");
    let text = answer.text();
    assert!(text.is_empty() || text.ends_with('\n'), "a line is whole");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("NDJSON")
}

/// Asserts that a line was refused, and returns the reason.
#[track_caller]
fn refused(answer: &Value, line: usize) -> String {
    assert_eq!(answer["line"], line, "{answer}");
    assert_eq!(answer.as_object().unwrap().len(), 2, "{answer}");
    answer["error"].as_str().expect("a reason").to_owned()
}

#[tokio::test]
async fn every_line_is_answered_in_order() {
    let org = system().await.organization().await;
    let lines = [
        json!({"id": "a", "email": "a@x.y"}).to_string(),
        json!({"id": "b", "email": "b@x.y"}).to_string(),
        json!({"id": "a", "email": "a@x.y"}).to_string(),
        json!({"id": "b", "email": "new@x.y"}).to_string(),
        json!({"id": "c"}).to_string(),
        json!({"email": "made up"}).to_string(),
    ]
    .join("\n");
    let mut answers = send(&org, lines).await;
    let made_up = answers.pop().unwrap();
    let id = made_up["id"].as_str().unwrap();
    uuid::Uuid::parse_str(id).expect("a UUID");
    let expected = json!({"line": 6, "id": id, "status": "created"});
    assert_eq!(made_up, expected);
    assert!(refused(&answers.pop().unwrap(), 5).contains("email"));
    let expected = [
        json!({"line": 1, "id": "a", "status": "created"}),
        json!({"line": 2, "id": "b", "status": "created"}),
        json!({"line": 3, "id": "a", "status": "unchanged"}),
        json!({"line": 4, "id": "b", "status": "updated"}),
    ];
    assert_eq!(answers, expected);
    let path = format!("{CONTACTS}/b");
    let b = org.until(&path, |b| b["email"] == "new@x.y").await;
    assert_eq!(b["id"], "b");
}

#[tokio::test]
async fn a_wrong_line_is_refused_and_the_others_are_taken() {
    let org = system().await.organization().await;
    let mut body = Vec::new();
    let long = json!({"email": "x".repeat(2 * 1024 * 1024)}).to_string();
    let lines: [&[u8]; 10] = [
        b"{\"id\":\"first\",\"email\":\"a\"}",
        b"no json",
        b"[1]",
        b"{\"email\":\"\xff\xfe\"}",
        long.as_bytes(),
        b"{\"email\":7}",
        b"{\"email\":\"a\",\"shoeSize\":41}",
        b"{\"email\":\"a\"} {\"email\":\"b\"}",
        b"null",
        b"{\"id\":\"last\",\"email\":\"a\"}",
    ];
    for line in lines {
        body.extend_from_slice(line);
        body.push(b'\n');
    }
    let answers = send(&org, body).await;
    assert_eq!(answers.len(), 10);
    let expected = json!({"line": 1, "id": "first", "status": "created"});
    assert_eq!(answers[0], expected);
    for (nth, answer) in answers.iter().enumerate().take(9).skip(1) {
        assert!(!refused(answer, nth + 1).is_empty());
    }
    assert!(refused(&answers[5], 6).contains("email"));
    assert!(refused(&answers[6], 7).contains("shoeSize"));
    let expected = json!({"line": 10, "id": "last", "status": "created"});
    assert_eq!(answers[9], expected);
}

#[tokio::test]
async fn empty_lines_are_passed_over_and_counted() {
    let org = system().await.organization().await;
    let lines = "\r\n{\"id\":\"a\",\"email\":\"a\"}\r\n\n  \n{\"id\":\"b\",\"email\":\"b\"}";
    let answers = send(&org, lines).await;
    let expected = [
        json!({"line": 2, "id": "a", "status": "created"}),
        json!({"line": 5, "id": "b", "status": "created"}),
    ];
    assert_eq!(answers, expected);
    assert_eq!(send(&org, "").await, [] as [Value; 0]);
    assert_eq!(send(&org, "\n\n").await, [] as [Value; 0]);
}

#[tokio::test]
async fn five_thousand_lines_are_taken_once_however_often_they_are_sent() {
    const LINES: usize = 5_000;
    let org = system().await.organization().await;
    let lines = ndjson((0..LINES).map(|nth| json!({"id": format!("c{nth}"), "email": "a@b.c"})));
    for status in ["created", "unchanged"] {
        let answers = send(&org, lines.clone()).await;
        assert_eq!(answers.len(), LINES);
        for (nth, answer) in answers.iter().enumerate() {
            let expected = json!({"line": nth + 1, "id": format!("c{nth}"), "status": status});
            assert_eq!(*answer, expected);
        }
    }
    let last = format!("{CONTACTS}/c{}", LINES - 1);
    org.until(&last, |_| true).await;
    let csv = org.admin.get("/api/export/contacts").await.text();
    assert_eq!(csv.lines().count(), LINES + 1);
}

#[tokio::test]
async fn two_that_write_the_same_records_at_once_both_get_answers() {
    let org = system().await.organization().await;
    let lines = |city: &str| -> String {
        let line = |nth| json!({"id": format!("c{nth}"), "email": "a", "city": city});
        ndjson((0..200).map(line))
    };
    let (one, other) = (lines("Rome"), lines("Oslo"));
    let (one, other) = tokio::join!(send(&org, one), send(&org, other));
    for (first, second) in one.iter().zip(&other) {
        let mut both = [&first["status"], &second["status"]];
        both.sort_by_key(ToString::to_string);
        assert_eq!(both, ["created", "updated"], "{first} {second}");
    }
}
