//! Workflows: triggered, cancelled, retried, saved; and what their runs wait for.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, post, records};
use crate::definitions::{HEARS, HELPS, WAITS, WORKFLOWS, definition};
use crate::notes::{ExpectedEvent, Outcome, Times};
use crate::world::text;
use hostile::Dice;

pub(super) async fn trigger(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let workflow = dice.pick(WORKFLOWS).unwrap_or("plain");
    let mark = load.client.number();
    let mut body = json!({"mark": mark, "name": format!("Lead {mark}")});
    let awaited = (workflow == WAITS).then(|| org.awaited.any(dice).filter(|_| dice.chance(30)));
    let awaited = awaited.map(|shared| shared.unwrap_or_else(|| load.client.number()));
    if let Some(number) = awaited {
        body["answer"] = format!("n{number}").into();
        body["record"] = if dice.chance(50) {
            format!("s{}", dice.below(records::SHARED)).into()
        } else {
            format!("w{mark}").into()
        };
    }
    let expected = json!({"workflowId": workflow, "triggerPayload": body});
    let expected = vec![ExpectedEvent::once("workflow.triggered", expected)];
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let command = post("trigger", &org.key, path, body, expected).keyed(dice, 60);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.runs.add(text(&body["runId"]));
        // Runs with an even mark wait for a time, and some of the others are never answered.
        if let Some(number) = awaited.filter(|_| mark % 2 == 1 && dice.chance(75)) {
            org.awaited.add(number);
        }
    }
}

/// Writes a lead that runs wait for.
pub(super) async fn answer(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    match org.awaited.take(dice) {
        Some(number) => {
            // Its run may be waiting by then.
            tokio::time::sleep(dice.millis(200..2_500)).await;
            records::post_one(load, dice, org, ("leads", "lead"), number).await;
        }
        None => nothing_to_do().await,
    }
}

pub(super) async fn cancel(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(run) = org.runs.any(dice) else {
        return nothing_to_do().await;
    };
    let expected =
        ExpectedEvent::once("run.cancelled", json!({"runId": run})).times(Times::AtMostOnce);
    let path = format!("/api/v1/runs/{run}/cancel");
    let command = post("cancel", &org.key, path, Value::Null, vec![expected]);
    let command = command.bare().keyed(dice, 40);
    load.client.command(dice, command).await;
}

/// Resumes a run that was cancelled or has failed; any other run refuses.
pub(super) async fn retry(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(run) = org.runs.any(dice) else {
        return nothing_to_do().await;
    };
    let expected = ExpectedEvent::once("run.retried", json!({"runId": run}));
    let path = format!("/api/v1/runs/{run}/retry");
    let command = post("retry", &org.key, path, Value::Null, vec![expected]);
    let command = command.bare().keyed(dice, 40);
    load.client.command(dice, command).await;
}

/// Saves one of the workflows in use, or one that only events trigger.
pub(super) async fn put(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let name = format!("Saved as {}", load.client.number());
    let kind = dice.pick(WORKFLOWS).filter(|_| dice.chance(80));
    let kind = kind.unwrap_or(if dice.chance(50) { HEARS } else { HELPS });
    let id = if dice.chance(50) {
        kind.to_owned()
    } else {
        format!("spare-{}", dice.below(8))
    };
    let body = definition(kind, &name, &format!("{}/step", load.receiver));
    let expected = ExpectedEvent::once("workflow.saved", json!({"workflowId": id, "name": name}));
    let path = format!("/api/v1/workflows/{id}");
    let command = post("put workflow", &org.key, path, body, vec![expected]);
    load.client.command(dice, command.by(Method::PUT)).await;
}
