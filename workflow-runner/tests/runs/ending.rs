//! Every run ends, with a reason.

use std::time::Duration;

use async_nats::HeaderMap;
use event_log::ReadError;
use schemas::Event;
use serde_json::{Value, json};

use crate::receiver::{Answer, Receiver};
use crate::server::connect_past_the_log;
use crate::world::{World, http, notify, trigger, workflow};

async fn failure(world: &World, steps: &[Value], payload: Value) -> String {
    world.save("w", workflow(steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", payload).await;
    match world.ended(&run).await {
        Event::RunFailed(failed) => failed.error,
        other => panic!("the run did not fail: {other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_that_will_not_pass_fails_at_once() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(422).text("no such lead"));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    let error = failure(&world, &steps, json!({})).await;
    assert_eq!(error, "step call: HTTP 422: no such lead");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(302).with("location", "/elsewhere"));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    let error = failure(&world, &steps, json!({})).await;
    assert_eq!(error, "step call: HTTP 302");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn attempts_come_to_an_end() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(503));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    let error = failure(&world, &steps, json!({})).await;
    assert_eq!(error, "step call: HTTP 503");
    assert_eq!(receiver.received().len(), 3);
}

#[tokio::test]
async fn nobody_listening_is_a_failure_with_a_reason() {
    let world = World::new().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/secret-path");
    let steps = [trigger(), http("call", &url, json!({}))];
    let error = failure(&world, &steps, json!({})).await;
    assert!(error.starts_with("step call: cannot connect"), "{error}");
    assert!(!error.contains("secret-path"), "{error}");
}

#[tokio::test]
async fn a_slow_answer_is_no_answer() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(200).after(Duration::from_mins(1)));
    let extra = json!({ "timeoutSeconds": 1, "retry": { "maxAttempts": 1 } });
    let steps = [trigger(), http("call", &receiver.url("/"), extra)];
    let error = failure(&world, &steps, json!({})).await;
    assert_eq!(error, "step call: no answer in time");
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_names_its_place() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let body = json!({ "body": { "lead": ["{{ trigger.lead.id }}"] } });
    let steps = [trigger(), http("call", &receiver.url("/"), body)];
    let error = failure(&world, &steps, json!({})).await;
    let expected = "step call: body.lead[0]: {{ trigger.lead.id }}: undefined; use default() if \
                    it may be absent";
    assert_eq!(error, expected);
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn a_header_cannot_be_broken_out_of() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let headers = json!({ "headers": { "X-Name": "{{ trigger.name }}" } });
    let steps = [trigger(), http("call", &receiver.url("/"), headers)];
    let error = failure(&world, &steps, json!({ "name": "a\r\nX-Admin: 1" })).await;
    assert_eq!(error, "step call: headers.X-Name: cannot be sent");
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn an_address_that_is_none_fails_at_once() {
    let world = World::new().await;
    let steps = [trigger(), http("call", "{{ trigger.url }}", json!({}))];
    let error = failure(&world, &steps, json!({ "url": "ftp://example.com/" })).await;
    assert_eq!(
        error,
        "step call: the address must begin with http:// or https://"
    );
}

#[tokio::test]
async fn a_version_that_is_not_there_ends_the_run() {
    let world = World::new().await;
    world.save("w", workflow(&[trigger()])).await;
    let _runner = world.runner().await;
    let run = world.trigger_version("w", 9, json!({})).await;
    let missing = world.trigger("nobody", json!({})).await;
    for run in [run, missing] {
        match world.ended(&run).await {
            Event::RunFailed(failed) => {
                assert!(
                    failed
                        .error
                        .ends_with("of the workflow was not found in the log")
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_run_follows_the_version_it_was_triggered_with() {
    let world = World::new().await;
    world
        .save("w", workflow(&[trigger(), notify("old", &json!({}))]))
        .await;
    world
        .save("w", workflow(&[trigger(), notify("new", &json!({}))]))
        .await;
    let _runner = world.runner().await;
    for (version, step) in [(1, "old"), (2, "new")] {
        let run = world.trigger_version("w", version, json!({})).await;
        world.ended(&run).await;
        let ran = world.events(&run).await.into_iter().any(|recorded| {
            matches!(recorded.event, Event::RunStepSucceeded(done) if done.step_id.as_str() == step)
        });
        assert!(ran, "{step} did not run");
    }
}

#[tokio::test]
async fn a_run_that_this_version_cannot_read_waits_for_one_that_can() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.then(Answer::status(503).with("retry-after", "1"));
    let extra = json!({ "retry": { "maxAttempts": 5, "initialSeconds": 1, "maxSeconds": 1 } });
    let steps = [trigger(), http("call", &receiver.url("/"), extra)];
    world.save("w", workflow(&steps)).await;
    let runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    world
        .until(&run, "the wait", |event| {
            matches!(event, Event::RunWaiting(_))
        })
        .await;
    runner.kill().await;

    let mut headers = HeaderMap::new();
    headers.insert("ce-type", "run.from_the_future.v9");
    let subject = world.log.subject_of(&world.stream(&run));
    let context = async_nats::jetstream::new(connect_past_the_log(world.nats_url()).await.unwrap());
    let published = context
        .publish_with_headers(subject, headers, "{}".into())
        .await;
    let unknown = published.unwrap().await.unwrap();

    // Other runs continue, and this one is not ended.
    let runner = world.runner().await;
    world.save("other", workflow(&[trigger()])).await;
    for _ in 0..3 {
        let other = world.trigger("other", json!({})).await;
        world.ended(&other).await;
    }
    runner.stop().await;
    let last = world.log.last(&world.stream(&run)).await;
    assert!(
        matches!(last, Err(ReadError::Undecodable { sequence, .. }) if sequence == unknown.sequence)
    );

    // As if it could be read again.
    let stream = context.get_stream(unknown.stream).await.unwrap();
    stream.delete_message(unknown.sequence).await.unwrap();
    let _runner = world.runner().await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
}

#[tokio::test]
async fn a_run_past_its_time_fails_even_over_a_call() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.usually(Answer::status(200).after(Duration::from_mins(1)));
    let mut definition = workflow(&[trigger(), http("call", &receiver.url("/"), json!({}))]);
    definition["timeoutSeconds"] = json!(1);
    world.save("w", definition).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("the run did not fail");
    };
    assert_eq!(failed.error, "the run did not end within its 1 seconds");
}

#[tokio::test]
async fn a_run_is_called_off_over_a_call_and_over_a_wait() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let extra = json!({ "retry": { "maxAttempts": 5, "initialSeconds": 60, "maxSeconds": 60 } });
    let steps = [trigger(), http("call", &receiver.url("/"), extra)];
    world.save("w", workflow(&steps)).await;
    let runner = world.runner().await;

    receiver.then(Answer::status(200).after(Duration::from_mins(1)));
    let calling = world.trigger("w", json!({})).await;
    receiver.wait_for(1).await;
    world.cancel(&calling).await;

    receiver.then(Answer::status(503));
    let waiting = world.trigger("w", json!({})).await;
    world
        .until(&waiting, "the wait", |event| {
            matches!(event, Event::RunWaiting(_))
        })
        .await;
    world.cancel(&waiting).await;

    // Nothing is in progress any more, so the end does not have to wait.
    runner.stop().await;
    for run in [calling, waiting] {
        assert_eq!(world.names(&run).await.last().unwrap(), "cancelled");
    }
}
