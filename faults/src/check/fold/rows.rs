//! Everything but runs and counts: an event creates, changes or deletes a row.

use serde_json::{Map, Value, json};

use super::Fold;
use crate::check::Fact;

/// Kinds of records, as named in events and as tables.
const RECORDS: &[(&str, &str)] = &[
    ("company", "companies"),
    ("deal", "deals"),
    ("contact", "contacts"),
    ("order", "orders"),
    ("lead", "leads"),
    ("client", "clients"),
];

/// Tables of records whose deletions are recorded, and the tables that record them.
const DELETIONS: &[(&str, &str)] = &[
    ("companies", "deleted_companies"),
    ("deals", "deleted_deals"),
    ("contacts", "deleted_contacts"),
];

/// Tables of personal data, and the column that identifies the person.
const OF_PERSONS: &[(&str, &str)] = &[
    ("accounts", "account_id"),
    ("circle_members", "account_id"),
    ("circle_places", "named_by"),
    ("sharing_pauses", "account_id"),
    ("sos_calls", "account_id"),
];

/// The attempts that a delivery keeps: its last ones.
const ATTEMPTS: usize = 100;

pub(super) fn take(fold: &mut Fold, fact: &Fact) {
    let (data, org, at) = (&fact.data, &fact.org, json!(fact.time));
    if let Some((kind, what)) = fact.kind.split_once('.')
        && let Some((_, table)) = RECORDS.iter().find(|(known, _)| *known == kind)
    {
        return record(fold, fact, table, what);
    }
    match fact.kind.as_str() {
        "organization.created" => fold.put(
            "organizations",
            json!({"org_id": data["orgId"], "name": data["name"], "created_at": at}),
        ),
        "key.created" => key(fold, fact),
        "key.revoked" => gone(fold, "api_keys", &[org, str(&data["keyId"])]),
        "workflow.saved" => workflow(fold, fact),
        "account.registered" => fold.put(
            "accounts",
            json!({"account_id": data["accountId"], "name": data["name"], "created_at": at}),
        ),
        "location.updated" => position(fold, fact),
        "delivery.attempted" => delivery(fold, fact),
        "delivery.queued" => queued(fold, fact),
        "account.forgotten" => forget(fold, data),
        kind if kind.starts_with("webhook.") => webhook(fold, fact),
        kind if kind.starts_with("circle.") => circle(fold, fact),
        "account.sharing_paused" | "account.sharing_resumed" => pause(fold, fact),
        "sos.triggered" => fold.put(
            "sos_calls",
            json!({"org_id": org, "sos_id": data["sos_id"], "account_id": data["user_id"],
                "sequence": fact.sequence, "triggered_at": at,
                "acknowledged_at": null, "resolved_at": null}),
        ),
        "sos.acknowledged" => answered(fold, fact, "acknowledged_at"),
        "sos.resolved" => answered(fold, fact, "resolved_at"),
        "place.entered" | "place.left" => fold.put(
            "crossings",
            json!({"account_id": data["user_id"], "sequence": fact.sequence}),
        ),
        _ => {}
    }
}

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn gone(fold: &mut Fold, table: &'static str, key: &[&str]) {
    fold.rows(table).remove(&key.join(" "));
}

/// A key created by one that had already been revoked never works.
fn key(fold: &mut Fold, fact: &Fact) {
    let (data, org) = (&fact.data, fact.org.as_str());
    let giver = match str(&data["createdBy"]) {
        "" => "operator",
        giver => giver,
    };
    let row = [org, giver].join(" ");
    let is_key = !["operator", "owner"].contains(&giver);
    if is_key && !fold.rows("api_keys").contains_key(&row) {
        return;
    }
    fold.put(
        "api_keys",
        json!({"org_id": org, "key_id": data["keyId"], "name": data["name"],
            "scopes": data["scopes"], "rate_limit": data["rateLimit"],
            "expires_at": data["expiresAt"], "created_at": fact.time, "created_by": giver}),
    );
}

/// The column name of a field.
pub(crate) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// A record's fields are its columns; nested ones have both names.
fn record(fold: &mut Fold, fact: &Fact, table: &'static str, what: &str) {
    let key: [&str; 2] = [&fact.org, str(&fact.data["id"])];
    let noted = DELETIONS.iter().find(|(known, _)| *known == table);
    if let Some((_, noted)) = noted {
        gone(fold, noted, &key);
    }
    if what == "deleted" {
        if let Some((_, noted)) = noted {
            let row = json!({"org_id": key[0], "id": key[1], "deleted_at": fact.time});
            fold.put(noted, row);
        }
        return gone(fold, table, &key);
    }
    let mut row = Map::new();
    for (name, value) in fact.data.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) => {
                for (inner, value) in inner {
                    row.insert(format!("{}_{}", snake(name), snake(inner)), value.clone());
                }
            }
            value => {
                row.insert(snake(name), value.clone());
            }
        }
    }
    row.insert("org_id".to_owned(), json!(fact.org));
    row.insert("updated_at".to_owned(), json!(fact.time));
    fold.put(table, Value::Object(row));
}

fn workflow(fold: &mut Fold, fact: &Fact) {
    let (data, org) = (&fact.data, &fact.org);
    let key = format!("{org} {}", str(&data["workflowId"]));
    let before = fold.rows("workflows").get(&key);
    let created = before.map_or(json!(fact.time), |before| before["created_at"].clone());
    let steps = data["steps"].as_array().into_iter().flatten();
    let has_trigger = steps.into_iter().any(|step| step["type"] == "TRIGGER");
    fold.put(
        "workflows",
        json!({"org_id": org, "workflow_id": data["workflowId"], "name": data["name"],
            "status": data["status"], "version": data["version"], "steps": data["steps"],
            "timeout_seconds": data["timeoutSeconds"], "has_trigger": has_trigger,
            "created_at": created, "updated_at": fact.time}),
    );
}

fn webhook(fold: &mut Fold, fact: &Fact) {
    let (data, org, at) = (&fact.data, &fact.org, json!(fact.time));
    let key = format!("{org} {}", str(&data["id"]));
    if fact.kind == "webhook.deleted" {
        fold.rows("webhooks").remove(&key);
        return;
    }
    if fact.kind == "webhook.created" {
        return fold.put(
            "webhooks",
            json!({"org_id": org, "webhook_id": data["id"], "url": data["url"],
                "events": data["events"], "description": data["description"],
                "status": "ENABLED", "disabled_reason": null, "created_at": at, "updated_at": at}),
        );
    }
    let Some(row) = fold.rows("webhooks").get_mut(&key) else {
        return;
    };
    match fact.kind.as_str() {
        "webhook.updated" => {
            for name in ["url", "events", "description", "status"] {
                row[name] = data[name].clone();
            }
            if data["status"] == "ENABLED" {
                row["disabled_reason"] = Value::Null;
            }
            row["updated_at"] = at;
        }
        "webhook.secret_rotated" => row["updated_at"] = at,
        "webhook.disabled" => {
            row["status"] = json!("DISABLED");
            row["disabled_reason"] = data["reason"].clone();
            row["updated_at"] = at;
        }
        _ => {}
    }
}

fn delivery(fold: &mut Fold, fact: &Fact) {
    let data = &fact.data;
    let attempt = json!({"at": data["at"], "status": data["status"], "error": data["error"],
        "durationMs": data["durationMs"], "response": data["response"]});
    let status = match str(&data["outcome"]) {
        "SUCCEEDED" => "SUCCEEDED",
        "RETRYING" => "PENDING",
        _ => "FAILED",
    };
    let key = format!("{} {}", fact.org, str(&data["deliveryId"]));
    if let Some(row) = fold.rows("deliveries").get_mut(&key) {
        row["status"] = json!(status);
        row["next_attempt_at"] = data["nextAttemptAt"].clone();
        if let Some(attempts) = row["attempts"].as_array_mut() {
            attempts.push(attempt);
            let older = attempts.len().saturating_sub(ATTEMPTS);
            attempts.drain(..older);
        }
        return;
    }
    fold.put(
        "deliveries",
        json!({"org_id": fact.org, "delivery_id": data["deliveryId"],
            "webhook_id": data["webhookId"], "event_id": data["eventId"],
            "event_type": data["type"], "status": status, "created_at": data["at"],
            "next_attempt_at": data["nextAttemptAt"], "attempts": [attempt]}),
    );
}

/// A delivery is to be made again, or for the first time, at its owner's request.
fn queued(fold: &mut Fold, fact: &Fact) {
    let (data, at) = (&fact.data, json!(fact.time));
    let key = format!("{} {}", fact.org, str(&data["deliveryId"]));
    if let Some(row) = fold.rows("deliveries").get_mut(&key) {
        row["status"] = json!("PENDING");
        row["next_attempt_at"] = at;
        return;
    }
    fold.put(
        "deliveries",
        json!({"org_id": fact.org, "delivery_id": data["deliveryId"],
            "webhook_id": data["webhookId"], "event_id": data["eventId"],
            "event_type": data["type"], "status": "PENDING", "created_at": at,
            "next_attempt_at": at, "attempts": []}),
    );
}

/// The first fix at a time counts.
fn position(fold: &mut Fold, fact: &Fact) {
    let data = &fact.data;
    let row = json!({"account_id": data["user_id"], "recorded_at": data["recorded_at"],
        "lat": data["lat"], "lng": data["lng"], "accuracy": data["accuracy"],
        "speed": data["speed"], "place_name": data["place_name"], "battery": data["battery"],
        "received_at": fact.time});
    let key = super::key(&row, &["account_id", "recorded_at"]);
    fold.rows("positions").entry(key).or_insert(row);
}

fn circle(fold: &mut Fold, fact: &Fact) {
    let (data, at) = (&fact.data, json!(fact.time));
    match fact.kind.as_str() {
        "circle.created" => {
            let owner = &data["owner"];
            fold.put(
                "circles",
                json!({"circle_id": data["circleId"], "owner_account": owner["account"],
                    "owner_org": owner["organization"], "name": data["name"], "created_at": at}),
            );
        }
        "circle.member_joined" => fold.put(
            "circle_members",
            json!({"circle_id": data["circle_id"], "account_id": data["user_id"],
                "sequence": fact.sequence, "joined_at": at, "left_at": null}),
        ),
        "circle.member_left" => {
            for row in fold.rows("circle_members").values_mut() {
                let same =
                    row["circle_id"] == data["circle_id"] && row["account_id"] == data["user_id"];
                if same && row["left_at"].is_null() {
                    row["left_at"] = at.clone();
                }
            }
        }
        "circle.place_added" => fold.put(
            "circle_places",
            json!({"circle_id": data["circleId"], "place_id": data["placeId"],
                "named_by": data["by"], "name": data["name"], "lat": data["lat"],
                "lng": data["lng"], "radius_m": data["radius_m"], "created_at": at}),
        ),
        "circle.place_removed" => {
            let key = [str(&data["circleId"]), str(&data["placeId"])];
            gone(fold, "circle_places", &key);
        }
        _ => {}
    }
}

/// Hiding or showing again ends the previous hiding.
fn pause(fold: &mut Fold, fact: &Fact) {
    let (data, at) = (&fact.data, json!(fact.time));
    for row in fold.rows("sharing_pauses").values_mut() {
        if row["account_id"] == data["accountId"] && is_later(&row["until_at"], &at) {
            row["until_at"] = at.clone();
        }
    }
    if fact.kind == "account.sharing_paused" {
        fold.put(
            "sharing_pauses",
            json!({"account_id": data["accountId"], "sequence": fact.sequence, "from_at": at,
                "until_at": data["until"]}),
        );
    }
}

/// A person's own data are deleted; a circle outlives the name that they gave it.
fn forget(fold: &mut Fold, data: &Value) {
    let account = &data["accountId"];
    for (table, whose) in OF_PERSONS {
        fold.rows(table).retain(|_, row| row[*whose] != *account);
    }
    for circle in fold.rows("circles").values_mut() {
        if circle["owner_account"] == *account {
            circle["name"] = Value::Null;
        }
    }
}

/// The first answer of its kind counts.
fn answered(fold: &mut Fold, fact: &Fact, column: &str) {
    let key = format!("{} {}", fact.org, str(&fact.data["sos_id"]));
    if let Some(call) = fold.rows("sos_calls").get_mut(&key)
        && call[column].is_null()
    {
        call[column] = json!(fact.time);
    }
}

fn is_later(one: &Value, other: &Value) -> bool {
    let time = |value: &Value| chrono::DateTime::parse_from_rfc3339(str(value)).ok();
    time(one) > time(other)
}
