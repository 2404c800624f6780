//! What steps do, seen from outside.

use std::time::Duration;

use schemas::Event;
use serde_json::{Value, json};

use crate::receiver::{Answer, Receiver};
use crate::world::{Runner, World, http, notify, settings, trigger, workflow};

#[tokio::test]
async fn three_steps_run_one_after_the_other() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::json(&json!({ "id": "c-1" })).with("x-kind", "lead"));
    let call = json!({
        "headers": { "X-Lead": "{{ trigger.id }}" },
        "body": { "email": "{{ trigger.email }}", "n": "{{ trigger.score + 1 }}", "fixed": true },
    });
    let data = json!({ "status": "{{ steps.call.output.status }}", "id": "{{ steps.call.output.body.id }}" });
    let steps = [
        trigger(),
        http("call", &receiver.url("/leads/{{ trigger.id }}"), call),
        notify("tell", &data),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world
        .trigger("w", json!({ "id": 7, "email": "a@b.c", "score": 41 }))
        .await;
    world.ended(&run).await;

    let names = world.names(&run).await;
    assert_eq!(
        names,
        [
            "workflow.triggered",
            "started",
            "step_started",
            "step_succeeded",
            "step_started",
            "step_succeeded",
            "step_started",
            "custom.told",
            "step_succeeded",
            "succeeded"
        ]
    );
    let received = &receiver.received()[0];
    assert_eq!(received.path, "/leads/7");
    assert_eq!(received.header("x-lead"), "7");
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("idempotency-key"), format!("{run}/call"));
    assert!(received.header("user-agent").starts_with("Waypost/"));
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(body, json!({ "email": "a@b.c", "n": 42, "fixed": true }));

    let events = world.events(&run).await;
    let trace = events[0].context.traceparent.clone().unwrap();
    assert_eq!(received.header("traceparent")[3..35], *trace.trace_id());
    for pair in events.windows(2) {
        let cause = Some(pair[0].id.to_string());
        assert_eq!(pair[1].context.causation_id, cause);
        assert_eq!(pair[1].context.correlation_id.as_deref(), Some("request-1"));
        assert_eq!(pair[1].context.traceparent.as_ref(), Some(&trace));
    }
    let Event::RunStepSucceeded(called) = &events[5].event else {
        panic!("{:?}", events[5].event);
    };
    assert_eq!(called.output["status"], 200);
    assert_eq!(called.output["headers"]["x-kind"], "lead");
    assert_eq!(called.output["body"], json!({ "id": "c-1" }));
    let Event::Custom(told) = &events[7].event else {
        panic!("{:?}", events[7].event);
    };
    assert_eq!(
        Value::Object(told.data.clone()),
        json!({ "status": 200, "id": "c-1" })
    );
}

#[tokio::test]
async fn steps_side_by_side_run_side_by_side_and_join() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(200).after(Duration::from_millis(300)));
    let next = json!({ "next": ["end"] });
    let mut end = notify("end", &json!({}));
    end["join"] = json!("all");
    let mut start = trigger();
    start["next"] = json!(["a", "b", "c"]);
    let steps = [
        start,
        http("a", &receiver.url("/a"), next.clone()),
        http("b", &receiver.url("/b"), next.clone()),
        http("c", &receiver.url("/c"), next),
        end,
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    receiver.wait_for(3).await;
    let running = world.names(&run).await;
    assert_eq!(
        running
            .iter()
            .filter(|name| *name == "step_succeeded")
            .count(),
        1
    );
    world.ended(&run).await;
    let names = world.names(&run).await;
    assert_eq!(
        names.iter().filter(|name| *name == "custom.told").count(),
        1
    );
    assert_eq!(names.last().map(String::as_str), Some("succeeded"));
}

#[tokio::test]
async fn bodies_are_kept_within_bounds() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.then(Answer::status(200).text("\u{1}".repeat(2_000_000)));
    let next = json!({ "size": "{{ steps.call.output.body|length }}" });
    let steps = [
        trigger(),
        http("call", &receiver.url("/"), json!({})),
        notify("tell", &next),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
    let events = world.events(&run).await;
    let output = events.iter().find_map(|recorded| match &recorded.event {
        Event::RunStepSucceeded(done) if done.step_id.as_str() == "call" => Some(&done.output),
        _ => None,
    });
    assert_eq!(output.unwrap()["truncated"], true);
}

#[tokio::test]
async fn a_run_that_would_hold_too_much_fails_and_says_so() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(200).text("x".repeat(250 * 1024)));
    let calls = (0..20).map(|nth| http(&format!("call{nth}"), &receiver.url("/"), json!({})));
    let steps: Vec<Value> = std::iter::once(trigger()).chain(calls).collect();
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("the run did not fail");
    };
    let expected = "step call16: the run would hold more than 4 MiB";
    assert!(failed.error.starts_with(expected), "{}", failed.error);
    let events = world.events(&run).await;
    let bytes = events.iter().map(|recorded| match &recorded.event {
        Event::RunStepStarted(begun) => begun.input.to_string().len(),
        Event::RunStepSucceeded(done) => done.output.to_string().len(),
        _ => 0,
    });
    assert!(bytes.sum::<usize>() <= domain::run::MAX_DATA);
    assert_eq!(receiver.received().len(), 17, "it does not go on");
}

#[tokio::test]
async fn private_addresses_are_not_called() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    world.save("w", workflow(&steps)).await;
    let _runner = Runner::start(world.another_log().await, settings(), false).await;
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("the run did not fail");
    };
    assert!(
        failed.error.contains("not on the public internet"),
        "{}",
        failed.error
    );
    assert!(receiver.received().is_empty());
}
