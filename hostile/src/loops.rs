//! A run that triggers its own workflow with a call of its HTTP step.

use serde_json::{Value, json};

use crate::neighbours::{A_WHILE, trigger};
use crate::prepare::start;
use crate::{Ground, Here, Neighbour};

/// The workflow that calls itself.
const LOOP: &str = "loop";
/// Runs of one spark: the first, and one for each hop.
const HOPS: u64 = 9;
/// How often they are counted per spark.
const LOOKS: usize = 6;

/// The workflow. Its call claims in `Waypost-Cause` that the run has no earlier cause.
pub(crate) fn workflow(ground: &Ground, neighbour: &Neighbour) -> (&'static str, Value) {
    let url = format!("http://{}/api/v1/workflows/{LOOP}/trigger", ground.commands);
    let headers = json!({"Authorization": format!("Bearer {}", neighbour.key),
        "Waypost-Cause": "1.0.mine"});
    let steps = json!([
        start("again"),
        {"id": "again", "type": "HTTP", "method": "POST", "url": url, "headers": headers,
            "timeoutSeconds": 10, "retry": {"maxAttempts": 1}},
    ]);
    (LOOP, steps)
}

/// Triggers it now and then, and checks how far each went.
pub(crate) async fn turn(mut here: Here) {
    for _ in 0..here.ground.size.sparks {
        here.chance.pause(A_WHILE * 2).await;
        let Some(before) = runs(&here).await else {
            here.got("runs that could not be counted");
            continue;
        };
        trigger(&here, LOOP, "{}").await;
        let mut seen = 0;
        for _ in 0..LOOKS {
            here.chance.pause(A_WHILE).await;
            let now = runs(&here).await.unwrap_or_default();
            seen = seen.max(now.saturating_sub(before));
        }
        here.got(if seen > HOPS {
            "more runs than it has hops".to_owned()
        } else {
            format!("{seen} runs seen")
        });
    }
}

/// Number of its runs.
async fn runs(here: &Here) -> Option<u64> {
    let path = format!("/api/v1/workflows/{LOOP}/runs?limit=1");
    here.send(("GET", &path), &Value::Null).await.1["total"].as_u64()
}
