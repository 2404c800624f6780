//! Webhooks and API keys.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, post};
use crate::notes::{ExpectedEvent, Outcome};
use crate::world::text;
use hostile::Dice;

/// Number of webhooks that the load creates for one organization.
const WEBHOOKS: usize = 5;
const WISHES: &[&str] = &[
    "lead.*",
    "deal.created",
    "key.*",
    "workflow.saved",
    "contact.deleted",
];

pub(super) async fn make_webhook(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    if org.webhooks.len() >= WEBHOOKS {
        return delete_webhook(load, dice).await;
    }
    let url = format!("{}/hook/n{}", load.receiver, load.client.number());
    let wish = dice.pick(WISHES).unwrap_or("lead.*");
    let body = json!({"url": url, "events": [wish]});
    let expected = vec![ExpectedEvent::once("webhook.created", body.clone())];
    let path = "/api/v1/webhooks".to_owned();
    let command = post("make webhook", &org.key, path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.webhooks.add(text(&body["id"]));
    }
}

pub(super) async fn change_webhook(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(id) = org.webhooks.any(dice) else {
        return nothing_to_do().await;
    };
    let about = format!("Changed as {}", load.client.number());
    let status = if dice.chance(70) {
        "ENABLED"
    } else {
        "DISABLED"
    };
    let body = json!({"description": about, "status": status});
    let mut held = body.clone();
    held["id"] = id.clone().into();
    let expected = vec![ExpectedEvent::once("webhook.updated", held)];
    let path = format!("/api/v1/webhooks/{id}");
    let command = post("change webhook", &org.key, path, body, expected);
    load.client.command(dice, command.by(Method::PATCH)).await;
}

pub(super) async fn delete_webhook(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(id) = org.webhooks.take(dice) else {
        return nothing_to_do().await;
    };
    let expected = vec![ExpectedEvent::once("webhook.deleted", json!({"id": id}))];
    let path = format!("/api/v1/webhooks/{id}");
    let command = post("delete webhook", &org.key, path, Value::Null, expected);
    load.client
        .command(dice, command.by(Method::DELETE).bare())
        .await;
}

pub(super) async fn rotate_secret(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(id) = org.webhooks.any(dice) else {
        return nothing_to_do().await;
    };
    let expected = vec![ExpectedEvent::once(
        "webhook.secret_rotated",
        json!({"id": id}),
    )];
    let path = format!("/api/v1/webhooks/{id}/rotate-secret");
    let command = post("rotate secret", &org.key, path, Value::Null, expected);
    let command = command.bare().keyed(dice, 50);
    load.client.command(dice, command).await;
}

/// Has a webhook receive its failed deliveries again, or everything since a recent write.
pub(super) async fn replay(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(id) = org.webhooks.any(dice) else {
        return nothing_to_do().await;
    };
    let body = match org.positions.any(dice) {
        Some(position) if dice.chance(60) => json!({"after": position}),
        _ => json!({"failed": true}),
    };
    let expected = vec![ExpectedEvent::once(
        "webhook.replay_requested",
        json!({"id": id}),
    )];
    let path = format!("/api/v1/webhooks/{id}/replay");
    let command = post("replay", &org.key, path, body, expected).keyed(dice, 50);
    load.client.command(dice, command).await;
}

pub(super) async fn make_key(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let name = format!("Key {}", load.client.number());
    let body = json!({"name": name, "scopes": ["read:leads"], "rateLimit": 50});
    let expected = vec![ExpectedEvent::once("key.created", body.clone())];
    let path = "/api/v1/keys".to_owned();
    let command = post("make key", &org.key, path, body, expected).keyed(dice, 60);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.keys.add(text(&body["keyId"]));
    }
}

pub(super) async fn revoke_key(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(id) = org.keys.take(dice) else {
        return nothing_to_do().await;
    };
    let expected = vec![ExpectedEvent::once("key.revoked", json!({"keyId": id}))];
    let path = format!("/api/v1/keys/{id}");
    let command = post("revoke key", &org.key, path, Value::Null, expected);
    load.client
        .command(dice, command.by(Method::DELETE).bare())
        .await;
}
