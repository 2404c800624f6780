//! Calls to forbidden addresses: metadata services in every spelling, and this machine, which
//! anyone who tries out Waypost has opened.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::neighbours::A_WHILE;
use crate::prepare::start;
use crate::wire::is_success;
use crate::{Ground, Here};

/// Addresses that stay blocked whatever an operator opens.
const SHUT: [&str; 14] = [
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.43518/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[fe80::a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://0.0.0.0/",
];
/// The usual ports of NATS, its monitor and Postgres.
const SERVERS: [u16; 3] = [4222, 8222, 5432];
/// The workflow that calls the address in its trigger.
const REACH: &str = "reach";
/// The workflow that calls the address it was saved with.
const FIXED: &str = "reach-fixed";
/// How often a run's end is polled.
const LOOKS: usize = 20;

/// The workflow that calls an address known only from its trigger.
pub(crate) fn workflow() -> (&'static str, Value) {
    (REACH, steps("{{ trigger.url }}"))
}

fn steps(url: &str) -> Value {
    json!([
        start("call"),
        {"id": "call", "type": "HTTP", "url": url, "timeoutSeconds": 2, "retry": {"maxAttempts": 1}},
    ])
}

/// A webhook to Waypost itself, without a key.
pub(crate) fn webhook(ground: &Ground) -> Value {
    let url = format!("http://{}/api/v1/workflows/tell/trigger", ground.commands);
    json!({"url": url, "events": ["custom.told"]})
}

pub(crate) async fn reach(mut here: Here) {
    loop {
        here.chance.pause(here.rest() / 2).await;
        let url = here.chance.pick(&SHUT).unwrap_or(SHUT[0]);
        match here.chance.below(4) {
            0 => tell_it(&here, url).await,
            1 => save_it(&here, url).await,
            2 => call_this_machine(&mut here).await,
            _ => call_by_trigger(&here, url).await,
        }
    }
}

/// Tries to create a webhook to a blocked address.
async fn tell_it(here: &Here, url: &str) {
    let body = json!({"url": url, "events": ["custom.none"]});
    let (told, made) = here.send(("POST", "/api/v1/webhooks"), &body).await;
    let Some(id) = made["id"].as_str() else {
        return here.got(format!("webhook {told}"));
    };
    here.got(format!("a webhook to {url}"));
    let path = format!("/api/v1/webhooks/{id}");
    here.send(("DELETE", &path), &json!({})).await;
}

/// Saves a workflow with a blocked address. Saving may succeed, since its address is checked when
/// it is called.
async fn save_it(here: &Here, url: &str) {
    let body =
        json!({"name": FIXED, "status": "ACTIVE", "timeoutSeconds": 60, "steps": steps(url)});
    let path = format!("/api/v1/workflows/{FIXED}");
    let (told, _) = here.send(("PUT", &path), &body).await;
    here.got(format!("save {told}"));
    if is_success(&told)
        && let Some(run) = run(here, FIXED, &json!({})).await
    {
        here.got(judge(url, &run));
    }
}

async fn call_by_trigger(here: &Here, url: &str) {
    if let Some(run) = run(here, REACH, &json!({"url": url})).await {
        here.got(judge(url, &run));
    }
}

/// Only a call to a blocked address would be a gain, so just the state is recorded.
async fn call_this_machine(here: &mut Here) {
    let ground = &here.ground;
    let mut own = vec![ground.commands, ground.queries, ground.sockets];
    own.extend(SERVERS.map(|port| SocketAddr::from(([127, 0, 0, 1], port))));
    let Some(to) = here.chance.pick(&own) else {
        return;
    };
    let trigger = json!({"url": format!("http://{to}/metrics")});
    if let Some(run) = run(here, REACH, &trigger).await {
        let state = run["state"].as_str().unwrap_or("odd");
        here.got(format!("this machine: {state}"));
    }
}

/// Triggers a workflow and waits for its run to end.
async fn run(here: &Here, workflow: &str, trigger: &Value) -> Option<Value> {
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let (told, begun) = here.send(("POST", &path), trigger).await;
    let Some(id) = begun["runId"].as_str() else {
        here.got(format!("trigger {told}"));
        return None;
    };
    let path = format!("/api/v1/runs/{id}");
    for _ in 0..LOOKS {
        tokio::time::sleep(A_WHILE / 2).await;
        let (_, run) = here.send(("GET", &path), &Value::Null).await;
        if run["endedAt"].is_string() {
            return Some(run);
        }
    }
    here.got("a run whose end was not seen");
    None
}

/// A refusal says that such addresses are refused; anything else means that the call was tried.
fn judge(url: &str, run: &Value) -> String {
    let error = run["error"].as_str().unwrap_or_default();
    if error.contains("not on the public internet") {
        "refused".to_owned()
    } else if run["state"] == "SUCCEEDED" || error.contains("HTTP ") {
        format!("an answer of {url}")
    } else {
        format!("a call to {url}: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_none_of_a_gain() {
        let judged = |run: Value| judge("http://2852039166/", &run);
        let shut = "the address is a cloud's metadata service, not on the public internet; such \
                    addresses are always refused";
        assert_eq!(judged(json!({"state": "FAILED", "error": shut})), "refused");
        for run in [
            json!({"state": "SUCCEEDED"}),
            json!({"state": "FAILED", "error": "HTTP 404: not found"}),
        ] {
            assert!(judged(run).starts_with("an answer"));
        }
        let run = json!({"state": "FAILED", "error": "no route to host"});
        assert!(judged(run).starts_with("a call"));
    }
}
