//! Secrets are sent over the wire and appear nowhere else.

use schemas::{Event, Recorded};
use serde_json::json;

use crate::receiver::{Answer, Receiver};
use crate::world::{World, http, notify, trigger, workflow};

const SECRET: &str = "s3cr3t/\"value\" & more";

/// Everything of a run as stored in the log.
fn written(events: &[Recorded]) -> String {
    let texts = events
        .iter()
        .map(|recorded| recorded.event.encode().unwrap());
    texts.map(|text| String::from_utf8(text).unwrap()).collect()
}

#[tokio::test]
async fn a_secret_goes_out_and_is_never_recorded() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.set_secret("TOKEN", SECRET).await;
    receiver.then(
        Answer::json(&json!({ "you": ["sent", format!("Bearer {SECRET}")], SECRET: 1 }))
            .with("x-echo", "s3cr3t%2F%22value%22%20%26%20more"),
    );
    receiver.then(Answer::status(400).text(format!("bad token {SECRET}")));
    let extra = json!({
        "headers": { "Authorization": "Bearer {{ secrets.TOKEN }}" },
        "body": { "token": "{{ 'x-' ~ secrets.TOKEN }}" },
    });
    let echo = json!({ "echo": "{{ steps.call.output.body.you[1] }}" });
    let steps = [
        trigger(),
        http(
            "call",
            &receiver.url("/?key={{ secrets.TOKEN }}"),
            extra.clone(),
        ),
        notify("tell", &echo),
        http("again", &receiver.url("/"), extra),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("the run did not fail");
    };
    assert_eq!(failed.error, "step again: HTTP 400: bad token ***");

    let received = receiver.received();
    assert_eq!(
        received[0].header("authorization"),
        format!("Bearer {SECRET}")
    );
    let body: serde_json::Value = serde_json::from_slice(&received[0].body).unwrap();
    assert_eq!(body["token"], format!("x-{SECRET}"));

    let events = world.events(&run).await;
    let text = written(&events);
    assert!(!text.contains("s3cr3t"), "{text}");
    let input = events.iter().find_map(|recorded| match &recorded.event {
        Event::RunStepStarted(begun) if begun.step_id.as_str() == "call" => Some(&begun.input),
        _ => None,
    });
    let input = input.unwrap();
    assert_eq!(input["headers"]["Authorization"], "Bearer ***");
    assert_eq!(input["body"]["token"], "x-***");
    assert!(input["url"].as_str().unwrap().ends_with("/?key=***"));
}

#[tokio::test]
async fn a_secret_in_an_address_stays_out_of_errors() {
    let world = World::new().await;
    world.set_secret("HOST", "s3cr3t.invalid").await;
    let extra = json!({ "retry": { "maxAttempts": 1 } });
    let steps = [
        trigger(),
        http("call", "http://{{ secrets.HOST }}:1/", extra),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    assert!(matches!(world.ended(&run).await, Event::RunFailed(_)));
    let text = written(&world.events(&run).await);
    assert!(!text.contains("s3cr3t"), "{text}");
}

#[tokio::test]
async fn a_secret_that_was_never_set_fails_the_step() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let extra = json!({ "headers": { "X-Key": "{{ secrets.NOBODY }}" } });
    let steps = [trigger(), http("call", &receiver.url("/"), extra)];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("the run did not fail");
    };
    let place = "step call: headers.X-Key: {{ secrets.NOBODY }}";
    assert!(failed.error.starts_with(place), "{}", failed.error);
    assert!(receiver.received().is_empty());
}
