//! How much, how fast. Not part of the usual tests: run with `--ignored --nocapture`.

use std::time::Instant;

use event_log::Item;
use schemas::{AggregateType, Event, Log};
use serde_json::json;

use crate::receiver::Receiver;
use crate::world::{World, http, notify, trigger, workflow};

async fn measure(steps: &[serde_json::Value], count: usize) {
    let world = World::new().await;
    world.save("w", workflow(steps)).await;
    let warm = world.trigger("w", json!({})).await;
    let _runner = world.runner().await;
    world.ended(&warm).await;
    let after = world.log.end(Log::Events).await.unwrap().sequence();
    let began = Instant::now();
    let triggering = async {
        for _ in 0..count / 500 {
            world.trigger_many("w", 500).await;
        }
        began.elapsed()
    };
    let ending = async {
        let mut tail = world
            .log
            .tail(Log::Events, after, &[AggregateType::Run])
            .await
            .unwrap();
        let mut ended = 0;
        while ended < count {
            for item in tail.next(1_000).await.unwrap().items {
                if let Item::Event(recorded) = item
                    && matches!(recorded.event, Event::RunSucceeded(_))
                {
                    ended += 1;
                }
            }
        }
    };
    let (triggered, ()) = tokio::join!(triggering, ending);
    let took = began.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let rate = count as f64 / took.as_secs_f64();
    println!(
        "{count} runs of {} steps: triggered in {triggered:?}, ended in {took:?}, {rate:.0} runs/s",
        steps.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, takes the whole machine"]
async fn sustained_runs() {
    measure(&[trigger()], 10_000).await;
    measure(
        &[
            trigger(),
            notify("tell", &json!({ "n": "{{ trigger.n }}" })),
        ],
        10_000,
    )
    .await;
    let receiver = Receiver::start().await;
    let call = json!({ "body": { "n": "{{ trigger.n }}" } });
    let steps = [
        trigger(),
        http("call", &receiver.url("/"), call),
        notify("tell", &json!({})),
    ];
    measure(&steps, 10_000).await;
}
