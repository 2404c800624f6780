//! Uploads with an `Idempotency-Key`, sent again.

use std::io;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use futures::future::join_all;
use futures::stream;
use schemas::AggregateType;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::support::{Answer, TestApi};

const PATH: &str = "/api/v1/records/contacts";
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const CSV: (&str, &str) = ("content-type", "text/csv");

async fn send(api: &TestApi, key: &str, body: impl Into<Body>) -> Answer {
    let headers = [NDJSON, ("idempotency-key", key)];
    api.send_with("POST", PATH, &headers, body).await
}

async fn send_without_key(api: &TestApi, body: impl Into<Body>) -> Answer {
    api.send_with("POST", PATH, &[NDJSON], body).await
}

async fn put(api: &TestApi, id: &str, name: &str) {
    let body = format!("{{\"firstName\": \"{name}\"}}");
    let answer = api.send("PUT", &format!("{PATH}/{id}"), body).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
}

fn line(id: &str, name: &str) -> String {
    format!("{{\"id\": \"{id}\", \"firstName\": \"{name}\"}}\n")
}

#[track_caller]
fn statuses(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let lines = answer.lines().into_iter();
    lines.map(|line| line["status"].clone()).collect()
}

#[track_caller]
fn assert_other_request(answer: &Answer) {
    assert_eq!(answer.status, 409, "{}", answer.body);
    let error = answer.error();
    assert!(
        error.contains("already used with another request"),
        "{error}"
    );
}

/// How many events a contact has.
async fn versions(api: &TestApi, id: &str) -> usize {
    api.events(AggregateType::Contact, id).await.len()
}

#[tokio::test]
async fn a_repeat_with_a_key_gets_the_first_answers() {
    let api = TestApi::open().await;
    let body = format!("{{\"firstName\": \"A\"}}\n{}", line("b", "B"));
    let first = send(&api, "n", body.clone()).await;
    assert_eq!(statuses(&first), ["created", "created"]);
    // Somebody else changes one in between; the repeat must not undo that.
    put(&api, "b", "Changed").await;
    let again = send(&api, "n", body).await;
    assert_eq!(again.body, first.body);
    assert_eq!(versions(&api, "b").await, 2);
}

#[tokio::test]
async fn another_body_under_a_used_key_is_refused_before_any_of_it_is_written() {
    let api = TestApi::open().await;
    let first = line("a", "A") + &line("b", "B");
    assert_eq!(statuses(&send(&api, "k", first).await).len(), 2);
    let new = "{\"firstName\": \"New\"}\n".to_owned();
    for other in [
        line("a", "A"),
        line("b", "B") + &line("a", "A"),
        new + &line("b", "Changed"),
        line("a", "A") + &line("b", "B") + &line("c", "C"),
        String::new(),
    ] {
        assert_other_request(&send(&api, "k", other).await);
    }
    // Neither may it be one record, nor may lines have the key of one record.
    let record = [("idempotency-key", "k")];
    let record = api.send_with("POST", PATH, &record, line("c", "C")).await;
    assert_other_request(&record);
    let record = [("idempotency-key", "of a record")];
    let record = api.send_with("POST", PATH, &record, line("d", "D")).await;
    assert_eq!(record.status, 201, "{}", record.body);
    assert_other_request(&send(&api, "of a record", line("d", "D")).await);
    for (id, expected) in [("a", 1), ("b", 1), ("c", 0), ("d", 1)] {
        assert_eq!(versions(&api, id).await, expected, "{id}");
    }
}

#[tokio::test]
async fn a_repeat_is_recognized_however_it_was_cut_or_packed() {
    let api = TestApi::open().await;
    let body = (0..500).map(|nth| line(&format!("c{nth}"), "N"));
    let body: String = body.collect();
    let first = send(&api, "k", body.clone()).await;
    assert!(statuses(&first).iter().all(|status| status == "created"));
    for size in [11, 1_000, 20_000] {
        let pieces = body.as_bytes().chunks(size);
        let pieces: Vec<_> = pieces
            .map(|piece| Ok::<_, io::Error>(piece.to_vec()))
            .collect();
        let again = send(&api, "k", Body::from_stream(stream::iter(pieces))).await;
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "pieces of {size}"
        );
    }
    for level in [1, 19] {
        let packed = zstd::encode_all(body.as_bytes(), level).unwrap();
        let coding = ("content-encoding", "zstd");
        let headers = [NDJSON, coding, ("idempotency-key", "k")];
        let again = api.send_with("POST", PATH, &headers, packed).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{level}");
    }
}

#[tokio::test]
async fn of_different_bodies_at_once_one_is_taken() {
    let api = &TestApi::open().await;
    let sent = ["A", "B", "C", "D"].map(|name| send(api, "k", line("a", name)));
    let answers = join_all(sent).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 200);
    assert_eq!((taken.len(), refused.len()), (1, 3));
    for answer in refused {
        assert_other_request(answer);
    }
    assert_eq!(versions(api, "a").await, 1);
}

#[tokio::test]
async fn the_same_body_at_once_is_written_once() {
    let api = &TestApi::open().await;
    let sent = (0..5).map(|_| send(api, "k", line("a", "A")));
    for answer in join_all(sent).await {
        assert_eq!(statuses(&answer), ["created"]);
    }
    assert_eq!(versions(api, "a").await, 1);
}

#[tokio::test]
async fn another_body_is_refused_even_if_it_pauses() {
    let api = TestApi::open().await;
    let first = send(&api, "k", line("a", "A")).await;
    assert_eq!(statuses(&first), ["created"]);
    // It ends once the server has waited in vain and waits again.
    let (other, mut polls) = (line("a", "B"), 0);
    let body = stream::poll_fn(move |context| {
        polls += 1;
        match polls {
            1 => Poll::Ready(Some(Ok::<_, io::Error>(other.clone()))),
            2 => Poll::Pending,
            3 => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(None),
        }
    });
    let answer = send(&api, "k", Body::from_stream(body)).await;
    assert_other_request(&answer);
    assert_eq!(versions(&api, "a").await, 1);
}

#[tokio::test]
async fn a_client_that_waits_for_answers_gets_them_under_a_key_too() {
    let api = TestApi::open().await;
    let (lines, pieces) = mpsc::channel::<Result<String, io::Error>>(1);
    let body = Body::from_stream(stream::unfold(pieces, async |mut pieces| {
        Some((pieces.recv().await?, pieces))
    }));
    lines.send(Ok(line("a", "A"))).await.unwrap();
    let headers = [NDJSON, ("idempotency-key", "k")];
    let mut answer = api.open_stream(PATH, &headers, body).await;
    assert_eq!(answer.next().await.unwrap()["id"], "a");
    lines.send(Ok(line("b", "B"))).await.unwrap();
    assert_eq!(answer.next().await.unwrap()["id"], "b");
    drop(lines);
    assert_eq!(answer.next().await, None);
    put(&api, "a", "Changed").await;
    let again = send(&api, "k", line("a", "A") + &line("b", "B")).await;
    assert_eq!(statuses(&again), ["created", "created"]);
    assert_eq!(versions(&api, "a").await, 2);
    assert_other_request(&send(&api, "k", line("a", "A")).await);
}

#[tokio::test]
async fn an_upload_that_broke_off_may_be_sent_again_whole() {
    let api = TestApi::open().await;
    let pieces = [Ok(line("a", "A")), Err(io::Error::other("cut off"))];
    let broken = send(&api, "k", Body::from_stream(stream::iter(pieces))).await;
    assert_eq!(broken.status, 400, "{}", broken.body);
    let whole = send(&api, "k", line("a", "A") + &line("b", "B")).await;
    assert_eq!(statuses(&whole), ["created", "created"]);
}

#[tokio::test]
async fn a_refused_header_row_leaves_its_key_unused() {
    let api = TestApi::open().await;
    let headers = [CSV, ("idempotency-key", "k")];
    let send = async |rows: &'static str| api.send_with("POST", PATH, &headers, rows).await;
    assert_eq!(send("shoeSize\n42\n").await.status, 400);
    let first = send("firstName\nAda\nBea\n").await;
    assert_eq!(statuses(&first), ["created", "created"]);
    assert_eq!(send("firstName\nAda\nBea\n").await.body, first.body);
    // The same rows under another header mean something else.
    assert_other_request(&send("lastName\nAda\nBea\n").await);
}

#[tokio::test]
async fn the_key_of_an_old_upload_may_be_used_again() {
    let api = TestApi::with_receipts_lasting(Duration::ZERO).await;
    put(&api, "b", "B").await;
    let first = send(&api, "k", line("a", "A") + &line("b", "B")).await;
    assert_eq!(statuses(&first), ["created", "unchanged"]);
    let other = send(&api, "k", line("a", "C") + &line("b", "D")).await;
    assert_eq!(statuses(&other), ["updated", "updated"]);
    let again = send(&api, "k", line("a", "C") + &line("b", "D")).await;
    assert_eq!(statuses(&again), ["unchanged", "unchanged"]);
}

#[tokio::test]
async fn a_line_that_changed_nothing_changes_nothing_later_either() {
    let api = TestApi::open().await;
    put(&api, "a", "One").await;
    let first = send(&api, "k", line("a", "One")).await;
    assert_eq!(statuses(&first), ["unchanged"]);
    put(&api, "a", "Two").await;
    // It reaches the server late.
    let again = send(&api, "k", line("a", "One")).await;
    assert_eq!(again.body, first.body);
    assert_eq!(versions(&api, "a").await, 2);
}

#[tokio::test]
async fn a_repeat_does_not_write_an_earlier_line_over_a_later_one() {
    let api = TestApi::open().await;
    put(&api, "a", "One").await;
    let lines = ["One", "Two", "Two", "One"].map(|name| line("a", name));
    let first = send(&api, "k", lines.concat()).await;
    let expected = ["unchanged", "updated", "unchanged", "updated"];
    assert_eq!(statuses(&first), expected);
    put(&api, "a", "Three").await;
    let again = send(&api, "k", lines.concat()).await;
    assert_eq!(again.body, first.body);
    assert_eq!(versions(&api, "a").await, 4);
}

#[tokio::test]
async fn thousands_of_lines_that_changed_nothing_are_answered_again() {
    let api = TestApi::open().await;
    let body = |name: &str| -> String {
        let lines = (0..2_500).map(|nth| line(&format!("c{nth}"), name));
        lines.collect()
    };
    let all = |answer: &Answer, status: &str| {
        let statuses = statuses(answer);
        assert_eq!(statuses.len(), 2_500);
        assert!(statuses.iter().all(|one| one == status), "{}", answer.body);
    };
    all(&send_without_key(&api, body("One")).await, "created");
    all(&send(&api, "k", body("One")).await, "unchanged");
    all(&send_without_key(&api, body("Two")).await, "updated");
    all(&send(&api, "k", body("One")).await, "unchanged");
    all(&send_without_key(&api, body("Two")).await, "unchanged");
}

#[tokio::test]
async fn a_repeat_is_recognized_behind_thousands_of_later_versions() {
    let api = TestApi::open().await;
    let first = send(&api, "k", line("a", "First")).await;
    assert_eq!(statuses(&first), ["created"]);
    let versions_of_others = (0..2_500).map(|nth| line("a", &format!("N{nth}")));
    let others = send_without_key(&api, versions_of_others.collect::<String>()).await;
    assert!(statuses(&others).iter().all(|status| status == "updated"));
    let again = send(&api, "k", line("a", "First")).await;
    assert_eq!(again.body, first.body);
    assert_eq!(versions(&api, "a").await, 2_501);
}
