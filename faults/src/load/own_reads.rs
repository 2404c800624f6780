//! Reads back its own writes at the position it was given: such a response is correct or missing,
//! never stale.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use super::records::{kind, record};
use super::{Load, post};
use crate::notes::{Complaint, ExpectedEvent, Outcome};
use crate::world::text;
use hostile::Dice;

const CHECK: &str = "one's own write is read at its position";

/// Writes and reads until the load is over.
pub(super) async fn check(load: Arc<Load>, mut dice: Dice, nth: usize) {
    while !load.client.is_over() {
        match dice.below(4) {
            0 => run(&load, &mut dice).await,
            1 => location(&load, &mut dice, nth).await,
            _ => a_record(&load, &mut dice, nth).await,
        }
        tokio::time::sleep(dice.millis(1..80)).await;
    }
}

/// Judges a response: a 503 or no response proves nothing.
async fn judge(
    load: &Load,
    dice: &mut Dice,
    (token, path, position): (&str, &str, &str),
    expected: &str,
    is_right: impl Fn(u16, &Value) -> bool,
) {
    let answer = load.client.read(dice, token, path, Some(position)).await;
    let Some(answer) = answer.filter(|answer| answer.status < 500 && answer.status != 429) else {
        return;
    };
    let body = answer.json();
    if is_right(answer.status, &body) {
        return load.client.notes.right(CHECK);
    }
    load.client.notes.complain(Complaint {
        check: CHECK,
        what: format!("GET {path} at {position}"),
        expected: expected.to_owned(),
        found: format!("{} {body}", answer.status),
    });
}

/// A record that no other worker writes: put, put again and deleted.
async fn a_record(load: &Load, dice: &mut Dice, nth: usize) {
    let org = load.org(dice);
    let (kind, event) = kind(dice);
    let id = format!("own-{nth}-{}", load.client.number());
    let path = format!("/api/v1/records/{kind}/{id}");
    for _ in 0..=dice.below(3) {
        let body = record(kind, load.client.number(), dice);
        let mut held = body.clone();
        held["id"] = id.clone().into();
        let expected = ExpectedEvent::once(&format!("{event}.created"), held.clone());
        let expected = vec![expected.or(&format!("{event}.updated"))];
        let command = post("put record", &org.key, path.clone(), body, expected).by(Method::PUT);
        let Outcome::Acknowledged {
            position: Some(position),
            ..
        } = load.client.command(dice, command).await
        else {
            return; // Its current state is unknown.
        };
        let wanted = |status: u16, body: &Value| status == 200 && crate::check::holds(body, &held);
        judge(
            load,
            dice,
            (&org.key, &path, &position),
            &held.to_string(),
            wanted,
        )
        .await;
    }
    let expected = vec![ExpectedEvent::once(
        &format!("{event}.deleted"),
        json!({"id": id}),
    )];
    let command = post(
        "delete record",
        &org.key,
        path.clone(),
        Value::Null,
        expected,
    );
    let command = command.by(Method::DELETE).bare();
    if let Outcome::Acknowledged {
        position: Some(position),
        ..
    } = load.client.command(dice, command).await
    {
        let gone = |status: u16, _: &Value| status == 404;
        judge(load, dice, (&org.key, &path, &position), "404", gone).await;
    }
}

async fn run(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let body = json!({"mark": load.client.number()});
    let expected = json!({"workflowId": "call", "triggerPayload": body});
    let expected = vec![ExpectedEvent::once("workflow.triggered", expected)];
    let path = "/api/v1/workflows/call/trigger".to_owned();
    let command = post("trigger", &org.key, path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged {
        position: Some(position),
        body,
    } = load.client.command(dice, command).await
    {
        let run = text(&body["runId"]);
        let path = format!("/api/v1/runs/{run}");
        let there = |status: u16, body: &Value| status == 200 && body["runId"] == run.as_str();
        judge(load, dice, (&org.key, &path, &position), "the run", there).await;
    }
}

/// A person's own latest position is never older than the one just acknowledged.
async fn location(load: &Load, dice: &mut Dice, nth: usize) {
    let person = &load.world.persons[nth % 3];
    let number = i64::try_from(load.client.number()).unwrap_or_default();
    let now = DateTime::from_timestamp(Utc::now().timestamp(), 0).unwrap_or_default();
    let at = now + chrono::TimeDelta::microseconds(number % 1_000_000);
    let at = at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let held = json!({"user_id": person.id, "recorded_at": at});
    let expected = vec![ExpectedEvent::once("location.updated", held)];
    let body = json!({"lat": 52.5, "lng": 13.4, "recorded_at": at});
    let path = "/location/update".to_owned();
    let command = post("positions", &person.token(), path, body, expected).keyed(dice, 40);
    if let Outcome::Acknowledged {
        position: Some(position),
        ..
    } = load.client.command(dice, command).await
    {
        let time = |text: &str| DateTime::parse_from_rfc3339(text).ok();
        let known = |status: u16, body: &Value| {
            let mine = body["data"].as_array().into_iter().flatten();
            let mut mine = mine.filter(|one| one["user_id"] == person.id);
            status == 200 && mine.any(|one| time(&text(&one["recorded_at"])) >= time(&at))
        };
        let place = (person.token(), "/location/latest");
        judge(load, dice, (&place.0, place.1, &position), &at, known).await;
    }
}
