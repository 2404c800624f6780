use std::time::Duration;

use futures::future::join_all;
use schemas::{AggregateType, Event};

use crate::support::House;

const PATH: &str = "/api/v1/workflows/w1/trigger";

async fn house() -> House {
    let house = House::open().await;
    house.put_workflow("w1", "ACTIVE").await;
    house
}

#[tokio::test]
async fn a_trigger_is_accepted_and_stored_in_the_log() {
    let house = house().await;
    let answer = house
        .send("POST", PATH, r#"{"a": 1, "triggeredBy": "me"}"#)
        .await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let events = house
        .events(AggregateType::Run, &answer.text("runId"))
        .await;
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
    let position = house
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
    let house = house().await;
    for body in ["", "  \n\t ", "{}"] {
        assert_eq!(house.send("POST", PATH, body).await.status, 202, "{body:?}");
    }
    let plain = house
        .send_with("POST", PATH, &[("content-type", "text/plain")], "")
        .await;
    assert_eq!(plain.status, 202);
}

#[tokio::test]
async fn other_bodies_are_400() {
    let house = house().await;
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(256 * 1024));
    for body in [
        "[]", "1", "null", "\"a\"", "{", "{} {}", "{'a': 1}", "\u{0}", &large,
    ] {
        let answer = house.send("POST", PATH, body.to_owned()).await;
        assert_eq!(answer.status, 400, "{body:.20} gave {}", answer.body);
        assert!(!answer.error().is_empty());
    }
    let mistyped = [("content-type", "text/plain")];
    assert_eq!(
        house.send_with("POST", PATH, &mistyped, "{}").await.status,
        400
    );
}

#[tokio::test]
async fn refusals_come_in_the_order_of_the_checks() {
    let house = house().await;
    let reader = format!("Bearer {}", house.key_with(&["workflows:read"]).await);
    for (authorization, path, status) in [
        ("Bearer wp_nonsense", PATH, 401),
        ("Basic abc", PATH, 401),
        (reader.as_str(), "/api/v1/workflows/none/trigger", 403),
        (reader.as_str(), "/api/v1/workflows//trigger", 403),
    ] {
        let headers = [("authorization", authorization)];
        let mut answer = house.send_with("POST", path, &headers, "[]").await;
        while status == 403 && answer.status == 401 {
            // The operator's key is on its way to this process.
            tokio::task::yield_now().await;
            answer = house.send_with("POST", path, &headers, "[]").await;
        }
        assert_eq!(answer.status, status, "{path} gave {}", answer.body);
    }
    for (path, body, status) in [
        ("/api/v1/workflows//trigger", "{}", 400),
        ("/api/v1/workflows/none/trigger", "[]", 400),
        ("/api/v1/workflows/none/trigger", "{}", 404),
        ("/api/v1/workflows/%00/trigger", "{}", 404),
    ] {
        let answer = house.send("POST", path, body).await;
        assert_eq!(answer.status, status, "{path} gave {}", answer.body);
    }
}

#[tokio::test]
async fn only_an_active_workflow_with_a_beginning_can_be_triggered() {
    let house = House::open().await;
    for status in ["DRAFT", "PAUSED", "ARCHIVED"] {
        house.put_workflow(status, status).await;
        let path = format!("/api/v1/workflows/{status}/trigger");
        let answer = house.send("POST", &path, "").await;
        assert_eq!(answer.status, 409);
        assert!(answer.error().contains(status), "{}", answer.body);
    }
    let body = r#"{"name": "W", "status": "ACTIVE", "steps": []}"#;
    house.send("PUT", "/api/v1/workflows/empty", body).await;
    let answer = house
        .send("POST", "/api/v1/workflows/empty/trigger", "")
        .await;
    assert_eq!(answer.status, 409, "{}", answer.body);
}

#[tokio::test]
async fn what_was_just_saved_is_what_the_next_trigger_sees() {
    let house = House::open().await;
    for version in 1..=20 {
        let status = if version % 2 == 0 { "PAUSED" } else { "ACTIVE" };
        house.put_workflow("w1", status).await;
        let expected = if version % 2 == 0 { 409 } else { 202 };
        assert_eq!(
            house.send("POST", PATH, "").await.status,
            expected,
            "version {version}"
        );
    }
}

#[tokio::test]
async fn a_position_brings_another_process_up_to_date() {
    let (house, other) = (house().await, House::open().await);
    let body = r#"{"name": "W", "status": "PAUSED", "steps": [{"id": "a", "type": "TRIGGER"}]}"#;
    let saved = house.send("PUT", "/api/v1/workflows/w1", body).await;
    let position = saved.position().unwrap();
    let key = format!("Bearer {}", house.key);
    let headers = [
        ("waypost-min-position", position),
        ("authorization", key.as_str()),
    ];
    assert_eq!(
        other.send_with("POST", PATH, &headers, "").await.status,
        409
    );
    let nonsense = [("waypost-min-position", "nonsense")];
    assert_eq!(
        house.send_with("POST", PATH, &nonsense, "").await.status,
        400
    );
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer() {
    let house = house().await;
    let headers = [("idempotency-key", "order-1")];
    let first = house.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let again = house.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(again.position(), first.position());

    let other_body = house.send_with("POST", PATH, &headers, r#"{"a": 2}"#).await;
    assert_eq!(other_body.status, 400, "{}", other_body.body);
    house.put_workflow("w2", "ACTIVE").await;
    let other_path = "/api/v1/workflows/w2/trigger";
    let other = house
        .send_with("POST", other_path, &headers, r#"{"a": 1}"#)
        .await;
    assert_eq!(other.status, 400);

    house.put_workflow("w1", "PAUSED").await;
    let later = house.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    assert_eq!(
        later.body, first.body,
        "the first answer stands, whatever came after"
    );
}

#[tokio::test]
async fn repeats_at_the_same_time_start_one_run() {
    let house = house().await;
    let headers = [("idempotency-key", "once")];
    let asked = (0..20).map(|_| house.send_with("POST", PATH, &headers, ""));
    let answers = join_all(asked).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 202 && answer.body == answers[0].body)
    );
}

#[tokio::test]
async fn an_old_key_may_be_used_again() {
    let house = House::with_receipts_lasting(Duration::ZERO).await;
    house.put_workflow("w1", "ACTIVE").await;
    let headers = [("idempotency-key", "again")];
    let first = house.send_with("POST", PATH, &headers, r#"{"a": 1}"#).await;
    let second = house.send_with("POST", PATH, &headers, r#"{"a": 2}"#).await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_ne!(first.text("runId"), second.text("runId"));
}

#[tokio::test]
async fn a_key_of_idempotency_has_its_bounds() {
    let house = house().await;
    for key in ["", &"x".repeat(256)] {
        let answer = house
            .send_with("POST", PATH, &[("idempotency-key", key)], "")
            .await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    let longest = "x".repeat(255);
    let answer = house
        .send_with("POST", PATH, &[("idempotency-key", &longest)], "")
        .await;
    assert_eq!(answer.status, 202);
}

#[tokio::test]
async fn another_organization_sees_nothing() {
    let (house, other) = (house().await, House::open().await);
    assert_eq!(other.send("POST", PATH, "").await.status, 404);
    let run = house.send("POST", PATH, "").await.text("runId");
    let path = format!("/api/v1/runs/{run}/cancel");
    assert_eq!(other.send("POST", &path, "").await.status, 404);
    assert_eq!(house.send("POST", &path, "").await.status, 202);
    assert_eq!(
        house.send("POST", &path, "").await.status,
        202,
        "called off stays called off"
    );
    let events = house.events(AggregateType::Run, &run).await;
    assert_eq!(events.len(), 2);
    assert!(matches!(events[1].event, Event::RunCancelled(_)));
}
