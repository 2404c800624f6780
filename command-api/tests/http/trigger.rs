use std::time::Duration;

use event_log::{Commit, Expected, Write};
use futures::future::join_all;
use schemas::{AggregateType, Context, Event, EventId, NewEvent, StreamId, run};
use uuid::Uuid;

use crate::support::TestApi;

const PATH: &str = "/api/v1/workflows/w1/trigger";

async fn api() -> TestApi {
    let api = TestApi::open().await;
    api.put_workflow("w1", "ACTIVE").await;
    api
}

#[tokio::test]
async fn a_trigger_is_accepted_and_stored_in_the_log() {
    let api = api().await;
    let answer = api
        .send("POST", PATH, r#"{"a": 1, "triggeredBy": "me"}"#)
        .await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let events = api.events(AggregateType::Run, &answer.text("runId")).await;
    let [first] = events.as_slice() else {
        panic!("{events:?}");
    };
    let Event::WorkflowTriggered(triggered) = &first.event else {
        panic!("{first:?}");
    };
    assert_eq!(triggered.workflow_version, 1);
    assert_eq!(triggered.trigger_payload["a"], 1);
    assert_eq!(triggered.trigger_payload["triggeredBy"], "api_key");
    assert!(triggered.trigger_payload["triggeredAt"].is_string());
    let position = api
        .commands
        .log()
        .parse_position(answer.position().unwrap())
        .unwrap();
    assert_eq!(position.sequence(), first.sequence);
    let traceparent = answer.headers["traceparent"].to_str().unwrap();
    let trace = first.context.traceparent.as_ref().unwrap();
    assert_eq!(trace.as_str(), traceparent);
}

#[tokio::test]
async fn bodies_that_count_as_none_are_none() {
    let api = api().await;
    for body in ["", "  \n\t ", "{}"] {
        assert_eq!(api.send("POST", PATH, body).await.status, 202, "{body:?}");
    }
    let plain = api
        .send_with("POST", PATH, &[("content-type", "text/plain")], "")
        .await;
    assert_eq!(plain.status, 202);
}

#[tokio::test]
async fn other_bodies_are_400() {
    let api = api().await;
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(256 * 1024));
    for body in [
        "[]", "1", "null", "\"a\"", "{", "{} {}", "{'a': 1}", "\u{0}", &large,
    ] {
        let answer = api.send("POST", PATH, body.to_owned()).await;
        assert_eq!(answer.status, 400, "{body:.20} gave {}", answer.body);
        assert!(!answer.error().is_empty());
    }
    let mistyped = [("content-type", "text/plain")];
    assert_eq!(
        api.send_with("POST", PATH, &mistyped, "{}").await.status,
        400
    );
}

#[tokio::test]
async fn refusals_come_in_the_order_of_the_checks() {
    let api = api().await;
    let reader = format!("Bearer {}", api.key_with(&["workflows:read"]).await);
    for (authorization, path, status) in [
        ("Bearer wp_nonsense", PATH, 401),
        ("Basic abc", PATH, 401),
        (reader.as_str(), "/api/v1/workflows/none/trigger", 403),
        (reader.as_str(), "/api/v1/workflows//trigger", 403),
    ] {
        let headers = [("authorization", authorization)];
        let mut answer = api.send_with("POST", path, &headers, "[]").await;
        while status == 403 && answer.status == 401 {
            // The operator's key is on its way to this process.
            tokio::task::yield_now().await;
            answer = api.send_with("POST", path, &headers, "[]").await;
        }
        assert_eq!(answer.status, status, "{path} gave {}", answer.body);
    }
    for (path, body, status) in [
        ("/api/v1/workflows//trigger", "{}", 400),
        ("/api/v1/workflows/none/trigger", "[]", 400),
        ("/api/v1/workflows/none/trigger", "{}", 404),
        ("/api/v1/workflows/%00/trigger", "{}", 404),
    ] {
        let answer = api.send("POST", path, body).await;
        assert_eq!(answer.status, status, "{path} gave {}", answer.body);
    }
}

#[tokio::test]
async fn only_an_active_workflow_with_a_beginning_can_be_triggered() {
    let api = TestApi::open().await;
    for status in ["DRAFT", "PAUSED", "ARCHIVED"] {
        api.put_workflow(status, status).await;
        let path = format!("/api/v1/workflows/{status}/trigger");
        let answer = api.send("POST", &path, "").await;
        assert_eq!(answer.status, 409);
        assert!(answer.error().contains(status), "{}", answer.body);
    }
    let body = r#"{"name": "W", "status": "ACTIVE", "steps": []}"#;
    api.send("PUT", "/api/v1/workflows/empty", body).await;
    let answer = api
        .send("POST", "/api/v1/workflows/empty/trigger", "")
        .await;
    assert_eq!(answer.status, 409, "{}", answer.body);
}

#[tokio::test]
async fn what_was_just_saved_is_what_the_next_trigger_sees() {
    let api = TestApi::open().await;
    for version in 1..=20 {
        let status = if version % 2 == 0 { "PAUSED" } else { "ACTIVE" };
        api.put_workflow("w1", status).await;
        let expected = if version % 2 == 0 { 409 } else { 202 };
        assert_eq!(
            api.send("POST", PATH, "").await.status,
            expected,
            "version {version}"
        );
    }
}

#[tokio::test]
async fn a_position_brings_another_process_up_to_date() {
    let (api, other) = (api().await, TestApi::open().await);
    let body = r#"{"name": "W", "status": "PAUSED", "steps": [{"id": "a", "type": "TRIGGER"}]}"#;
    let saved = api.send("PUT", "/api/v1/workflows/w1", body).await;
    let position = saved.position().unwrap();
    let key = format!("Bearer {}", api.key);
    let headers = [
        ("waypost-min-position", position),
        ("authorization", key.as_str()),
    ];
    assert_eq!(
        other.send_with("POST", PATH, &headers, "").await.status,
        409
    );
    let nonsense = [("waypost-min-position", "nonsense")];
    assert_eq!(api.send_with("POST", PATH, &nonsense, "").await.status, 400);
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer() {
    let api = api().await;
    let headers = [("idempotency-key", "order-1")];
    let first = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let again = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(again.position(), first.position());

    let other_body = api.send_with("POST", PATH, &headers, r#"{"a": 2}"#).await;
    assert_eq!(other_body.status, 400, "{}", other_body.body);
    api.put_workflow("w2", "ACTIVE").await;
    let other_path = "/api/v1/workflows/w2/trigger";
    let other = api
        .send_with("POST", other_path, &headers, r#"{"a": 1}"#)
        .await;
    assert_eq!(other.status, 400);

    api.put_workflow("w1", "PAUSED").await;
    let later = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!(
        later.body, first.body,
        "the first answer is repeated, whatever came after"
    );
}

#[tokio::test]
async fn a_repeat_starts_no_other_run_when_the_first_is_forgotten() {
    let api = api().await;
    let headers = [("idempotency-key", "order-1")];
    let first = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    let run_id = first.text("runId");
    let begun = api.events(AggregateType::Run, &run_id).await;
    let forgotten = NewEvent {
        id: EventId(Uuid::now_v7()),
        time: api.commands.now(),
        event: Event::RunForgotten(run::Forgotten {
            run_id: run_id.as_str().into(),
        }),
        context: Context::default(),
        receipt: None,
    };
    let stream = StreamId::new(&api.org, AggregateType::Run, &run_id);
    let commit: Commit = Write {
        stream: stream.clone(),
        expected: Expected::At(begun[0].sequence),
        events: vec![forgotten],
    }
    .into();
    let log = api.commands.log();
    let end = log.commit(commit).await.unwrap().sequence();
    // Before its earlier events are erased, and after that.
    for _ in 0..2 {
        let again = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
        assert_eq!((again.status, &again.body), (202, &first.body));
        log.erase_before(&stream, end).await.unwrap();
    }
    let left = api.events(AggregateType::Run, &run_id).await;
    assert!(
        matches!(left.as_slice(), [last] if matches!(last.event, Event::RunForgotten(_))),
        "{left:?}"
    );
}

#[tokio::test]
async fn repeats_at_the_same_time_start_one_run() {
    let api = api().await;
    let headers = [("idempotency-key", "once")];
    let asked = (0..20).map(|_| api.send_with("POST", PATH, &headers, ""));
    let answers = join_all(asked).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 202 && answer.body == answers[0].body)
    );
}

#[tokio::test]
async fn an_old_key_may_be_used_again() {
    let api = TestApi::with_receipts_lasting(Duration::ZERO).await;
    api.put_workflow("w1", "ACTIVE").await;
    let headers = [("idempotency-key", "again")];
    let first = api.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    let second = api.send_with("POST", PATH, &headers, r#"{"a": 2}"#).await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_ne!(first.text("runId"), second.text("runId"));
}

#[tokio::test]
async fn a_key_of_idempotency_has_its_bounds() {
    let api = api().await;
    for key in ["", &"x".repeat(256)] {
        let answer = api
            .send_with("POST", PATH, &[("idempotency-key", key)], "")
            .await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    let longest = "x".repeat(255);
    let answer = api
        .send_with("POST", PATH, &[("idempotency-key", &longest)], "")
        .await;
    assert_eq!(answer.status, 202);
}

#[tokio::test]
async fn another_organization_sees_nothing() {
    let (api, other) = (api().await, TestApi::open().await);
    assert_eq!(other.send("POST", PATH, "").await.status, 404);
    let run = api.send("POST", PATH, "").await.text("runId");
    let path = format!("/api/v1/runs/{run}/cancel");
    assert_eq!(other.send("POST", &path, "").await.status, 404);
    assert_eq!(api.send("POST", &path, "").await.status, 202);
    assert_eq!(
        api.send("POST", &path, "").await.status,
        202,
        "called off stays called off"
    );
    let events = api.events(AggregateType::Run, &run).await;
    assert_eq!(events.len(), 2);
    assert!(matches!(events[1].event, Event::RunCancelled(_)));
}
