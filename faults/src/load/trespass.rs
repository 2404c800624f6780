//! The hostile tenant tries what belongs to others: with its key and with a token of its own.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, post};
use crate::client::Command;
use crate::notes::{Asked, Complaint, Outcome};
use crate::world::{Org, Person, text};
use hostile::Dice;

const SHUT: &str = "what belongs to others was neither shown nor changed";

/// Takes the hostile tenant's webhooks away, so that nothing goes on being sent to nobody.
pub(crate) async fn end_webhooks(load: &Load, dice: &mut Dice) {
    let Some(neighbour) = &load.world.neighbour else {
        return;
    };
    let path = "/api/v1/webhooks?limit=100";
    let listed = load.client.read(dice, &neighbour.key, path, None).await;
    let listed = listed.map(|answer| answer.json()).unwrap_or_default();
    for webhook in listed["data"].as_array().into_iter().flatten() {
        let id = text(&webhook["id"]);
        let asked = vec![Asked::once("webhook.deleted", json!({"id": id}))];
        let path = format!("/api/v1/webhooks/{id}");
        let command = post("delete webhook", &neighbour.key, path, Value::Null, asked);
        let command = command.bare().by(Method::DELETE);
        load.client.command(dice, command).await;
    }
}

/// Tries one thing that it has no right to.
pub(super) async fn try_one(load: &Load, dice: &mut Dice) {
    let Some(neighbour) = &load.world.neighbour else {
        return nothing_to_do().await;
    };
    let (org, person) = (load.org(dice), load.person(dice));
    if dice.chance(50) {
        let Some(path) = readable(org, person, dice) else {
            return nothing_to_do().await;
        };
        let answer = load.client.read(dice, &neighbour.key, &path, None).await;
        let shown = answer.filter(crate::client::Answer::is_success);
        judge(load, "GET", &path, shown.map(|answer| answer.json()));
        return;
    }
    let Some((method, path, body)) = changeable(org, person, dice) else {
        return nothing_to_do().await;
    };
    let told = format!("{method} {path}");
    let command = post("trespass", &neighbour.key, path.clone(), body, Vec::new());
    let command = Command { method, ..command };
    let changed = match load.client.command(dice, command).await {
        Outcome::Acknowledged { body, .. } => Some(body),
        Outcome::Refused { .. } | Outcome::Unknown => None,
    };
    judge(load, &told, "", changed);
}

fn judge(load: &Load, method: &str, path: &str, got: Option<Value>) {
    match got {
        None => load.client.notes.right(SHUT),
        Some(got) => load.client.notes.complain(Complaint {
            check: SHUT,
            what: format!("{method} {path}"),
            expected: "a refusal".to_owned(),
            found: got.to_string(),
        }),
    }
}

/// Something of others that can be read by those it belongs to.
fn readable(org: &Org, person: &Person, dice: &mut Dice) -> Option<String> {
    Some(match dice.below(6) {
        0 => format!("/api/v1/runs/{}", org.runs.any(dice)?),
        1 => format!("/api/v1/webhooks/{}", org.webhooks.any(dice)?),
        2 => format!("/api/v1/webhooks/{}/deliveries", org.webhooks.any(dice)?),
        3 => format!("/location/history?user_id={}", person.id),
        4 => format!("/circles/{}/places", person.circles.any(dice)?),
        _ => "/api/v1/workflows/plain".to_owned(),
    })
}

/// Something of others that can be changed by those it belongs to.
fn changeable(org: &Org, person: &Person, dice: &mut Dice) -> Option<(Method, String, Value)> {
    let nothing = json!({});
    let post = |path: String| (Method::POST, path, nothing.clone());
    let delete = |path: String| (Method::DELETE, path, nothing.clone());
    Some(match dice.below(8) {
        0 => post(format!("/api/v1/runs/{}/cancel", org.runs.any(dice)?)),
        1 => post(format!("/api/v1/runs/{}/retry", org.runs.any(dice)?)),
        2 => post("/api/v1/workflows/plain/trigger".to_owned()),
        3 => delete(format!("/api/v1/webhooks/{}", org.webhooks.any(dice)?)),
        4 => {
            let path = format!("/api/v1/webhooks/{}/rotate-secret", org.webhooks.any(dice)?);
            post(path)
        }
        5 => delete(format!("/api/v1/keys/{}", org.keys.any(dice)?)),
        6 => post(format!(
            "/api/v1/circles/{}/invites",
            org.circles.any(dice)?
        )),
        _ => post(format!("/sos/{}/resolve", person.calls.any(dice)?)),
    })
}
