//! What is sent, to which endpoint, and how soon.

use std::time::Duration;

use axum::http::HeaderMap;
use schemas::delivery::Outcome;
use standardwebhooks::Webhook;

use super::{Attempts, Receiver, Runner, attempts, settings};
use crate::support::World;

#[tokio::test]
async fn an_event_arrives_signed_and_traced() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let runner = Runner::start(&world).await;
    let hook = world.webhook(&receiver.url("/hook"), &["run.*"]).await;
    let (run, position) = world.run().await;
    let request = receiver.wait_for(1).await.remove(0);

    let verifier = Webhook::new(&hook.secret).unwrap();
    let signed = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: HeaderMap = signed
        .iter()
        .map(|name| (name.parse().unwrap(), request.headers[*name].clone()))
        .collect();
    verifier.verify(&request.body, &headers).unwrap();

    let body = request.json();
    assert_eq!(body["type"], "run.started");
    assert_eq!(body["data"]["runId"], run.as_str());
    assert_eq!(body["position"], position.to_string());
    let fields: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["type", "timestamp", "data", "position"]);
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.header("user-agent").starts_with("Waypost/"));
    assert!(request.header("webhook-id").starts_with("msg_"));

    let run = schemas::StreamId::new(&world.org, schemas::AggregateType::Run, run.as_str());
    let started = world.log.last(&run).await.unwrap().unwrap();
    let trace = started.context.traceparent.unwrap();
    let sent = schemas::Traceparent::parse(request.header("traceparent")).unwrap();
    assert_eq!(sent.trace_id(), trace.trace_id());
    assert_ne!(sent.as_str(), trace.as_str(), "a span of its own");
    runner.stop().await;
}

#[tokio::test]
async fn an_attempt_is_on_record() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, _| axum::response::IntoResponse::into_response("x".repeat(5_000)));
    let runner = Runner::start(&world).await;
    let hook = world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    let (_, position) = world.run().await;
    let made = log.until_ended(1).await.remove(0);
    assert_eq!(made.message.webhook_id.as_str(), hook.id);
    assert_eq!(made.message.event_sequence, position.sequence());
    assert_eq!(made.message.event_type, "run.started");
    assert_eq!((made.attempt, made.status), (1, Some(200)));
    assert_eq!(made.error, None);
    assert_eq!(made.outcome, Outcome::Succeeded);
    assert_eq!(made.response.as_deref(), Some("x".repeat(1_024).as_str()));
    let delivery = receiver.received()[0].header("webhook-id").to_owned();
    assert_eq!(made.message.delivery_id.as_str(), delivery);
    assert_eq!(attempts(&world, &delivery).await.len(), 1);
    runner.stop().await;
}

#[tokio::test]
async fn each_endpoint_gets_what_it_asked_for() {
    let world = World::new().await;
    let neighbour = world.neighbour();
    let receiver = Receiver::start().await;
    world.contacts(0..5, 0).await;
    let runner = Runner::start(&world).await;
    world
        .webhook(&receiver.url("/contacts"), &["contact.*"])
        .await;
    world
        .webhook(&receiver.url("/started"), &["run.started"])
        .await;
    world.webhook(&receiver.url("/all"), &[]).await;
    let foreign = receiver.url("/foreign");
    neighbour.webhook(&foreign, &["run.*"]).await;
    world.contacts(5..6, 0).await;
    world.run().await;
    let mut log = Attempts::follow(&world).await;
    log.until_ended(5).await;
    let mut got: Vec<(String, String)> = receiver
        .received()
        .iter()
        .map(|r| {
            (
                r.path.clone(),
                r.json()["type"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    got.sort();
    let expected = [
        ("/all", "contact.created"),
        ("/all", "run.started"),
        ("/all", "workflow.triggered"),
        ("/contacts", "contact.created"),
        ("/started", "run.started"),
    ];
    let expected = expected.map(|(path, kind)| (path.to_owned(), kind.to_owned()));
    assert_eq!(got, expected);
    runner.stop().await;
}

#[tokio::test]
async fn a_slow_endpoint_delays_no_other() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.delay(Duration::from_mins(1));
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/slow"), &["contact.*"]).await;
    world.webhook(&receiver.url("/quick"), &["contact.*"]).await;
    let quick = || {
        let requests = receiver.received();
        requests.iter().filter(|r| r.path == "/quick").count()
    };
    // More than the slow one may have in progress, and more than its queue holds in memory.
    world.contacts(0..5_000, 0).await;
    crate::support::eventually("the quick endpoint to have all", async || quick() == 5_000).await;
    runner.kill().await;
}

#[tokio::test]
async fn a_private_address_is_not_called_unless_allowed() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let no_retries = webhooks_without_retries();
    let runner = Box::pin(Runner::reaching(&world, no_retries, false)).await;
    world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await.remove(0);
    assert_eq!(made.outcome, Outcome::Failed);
    assert!(made.error.unwrap().contains("not on the public internet"));
    assert!(receiver.received().is_empty());
    runner.stop().await;
}

fn webhooks_without_retries() -> workflow_runner::webhooks::WebhookSettings {
    workflow_runner::webhooks::WebhookSettings {
        retries: Vec::new(),
        ..settings()
    }
}
