//! Workflows: triggered, cancelled, retried, saved.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, post};
use crate::notes::{Asked, Outcome, Times};
use crate::world::{WORKFLOWS, definition, text};
use hostile::Dice;

pub(super) async fn trigger(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let workflow = dice.pick(WORKFLOWS).unwrap_or("plain");
    let mark = load.client.number();
    let body = json!({"mark": mark, "name": format!("Lead {mark}")});
    let asked = json!({"workflowId": workflow, "triggerPayload": body});
    let asked = vec![Asked::once("workflow.triggered", asked)];
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let command = post("trigger", &org.key, path, body, asked).keyed(dice, 60);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.runs.add(text(&body["runId"]));
    }
}

pub(super) async fn cancel(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(run) = org.runs.any(dice) else {
        return nothing_to_do().await;
    };
    let asked = Asked::once("run.cancelled", json!({"runId": run})).times(Times::AtMostOnce);
    let path = format!("/api/v1/runs/{run}/cancel");
    let command = post("cancel", &org.key, path, Value::Null, vec![asked]);
    let command = command.bare().keyed(dice, 40);
    load.client.command(dice, command).await;
}

/// Has a run go on that was called off or has failed; any other refuses.
pub(super) async fn retry(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(run) = org.runs.any(dice) else {
        return nothing_to_do().await;
    };
    let asked = Asked::once("run.retried", json!({"runId": run}));
    let path = format!("/api/v1/runs/{run}/retry");
    let command = post("retry", &org.key, path, Value::Null, vec![asked]);
    let command = command.bare().keyed(dice, 40);
    load.client.command(dice, command).await;
}

/// Saves one of the workflows that are in use, or one that nobody triggers.
pub(super) async fn put(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let name = format!("Saved as {}", load.client.number());
    let kind = dice.pick(WORKFLOWS).unwrap_or("plain");
    let id = if dice.chance(50) {
        kind.to_owned()
    } else {
        format!("spare-{}", dice.below(8))
    };
    let body = definition(kind, &name, &format!("{}/step", load.receiver));
    let asked = Asked::once("workflow.saved", json!({"workflowId": id, "name": name}));
    let path = format!("/api/v1/workflows/{id}");
    let command = post("put workflow", &org.key, path, body, vec![asked]);
    load.client.command(dice, command.by(Method::PUT)).await;
}
