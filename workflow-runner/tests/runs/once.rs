//! What is done once, though others write to the run at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::run::{StepSucceeded, Way};
use schemas::{Event, RunId};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Runner, World, http, trigger, workflow};

const RUNS: usize = 20;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A call beside a wait, to an address that ends with the run's id.
async fn world_with_a_call_beside_a_wait(listener: &TcpListener) -> World {
    let world = World::new().await;
    let address = listener.local_addr().unwrap();
    let mut start = trigger();
    start["next"] = json!(["call", "reply"]);
    let url = format!("http://{address}/{{{{ run.id }}}}");
    let call = http("call", &url, json!({ "next": [] }));
    let reply = json!({ "id": "reply", "type": "WAIT_FOR_EVENT", "event": "lead.*",
        "timeoutSeconds": 60, "next": [] });
    world.save("w", workflow(&[start, call, reply])).await;
    world
}

/// Reads a request without a body; returns the run that it names.
async fn called_by(stream: &mut TcpStream) -> RunId {
    let (mut head, mut part) = (Vec::new(), [0; 1_024]);
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "the request was cut off");
        head.extend_from_slice(&part[..read]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    RunId::from(path.trim_start_matches('/'))
}

/// Ends a run's wait as the matcher does, unless that was done.
async fn end_wait(world: &World, run: &RunId) {
    let events = world.events(run).await;
    let is_end = |event: &Event| matches!(event, Event::RunStepSucceeded(ended) if ended.step_id.as_str() == "reply");
    if events.iter().any(|recorded| is_end(&recorded.event)) {
        return;
    }
    let seen = events.last().map(|last| last.sequence);
    let ended = Event::RunStepSucceeded(StepSucceeded {
        run_id: run.clone(),
        workflow_id: "w".into(),
        step_id: "reply".into(),
        attempt: 1,
        way: Way::Next,
        output: json!({}),
    });
    world.append(&world.stream(run), seen, ended).await;
}

/// Answers every call, right after the wait beside it has ended.
async fn answer_all(world: &World, listener: &TcpListener, calls: &AtomicUsize) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let run = called_by(&mut stream).await;
        calls.fetch_add(1, Ordering::Relaxed);
        end_wait(world, &run).await;
        stream.write_all(ANSWER).await.unwrap();
        stream.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_call_is_not_repeated_because_a_wait_beside_it_ended_as_it_was_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = world_with_a_call_beside_a_wait(&listener).await;
    let _runner = Runner::without_triggers(&world).await;
    let calls = AtomicUsize::new(0);
    let runs = async {
        for _ in 0..RUNS {
            let run = world.trigger("w", json!({})).await;
            let end = world.ended(&run).await;
            assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
        }
    };
    tokio::select! {
        () = answer_all(&world, &listener, &calls) => {}
        () = runs => {}
    }
    assert_eq!(calls.into_inner(), RUNS);
}
