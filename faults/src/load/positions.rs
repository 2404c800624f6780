//! Positions of persons: single, many at once, some sent twice; and hiding.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{Load, post};
use crate::client::Command;
use crate::notes::{Admitted, ExpectedEvent, Outcome, Times};
use crate::world::Person;
use hostile::Dice;

/// A fix at a time that is unique in this run: its number is in the microseconds.
fn fix(load: &Load, dice: &mut Dice) -> Value {
    let number = i64::try_from(load.client.number()).unwrap_or_default();
    let base = DateTime::from_timestamp(Utc::now().timestamp(), 0).unwrap_or_default();
    let at = base - TimeDelta::seconds(i64::try_from(dice.below(20)).unwrap_or_default());
    let at = at + TimeDelta::microseconds(number % 1_000_000);
    let off = f64::from(u32::try_from(dice.below(20)).unwrap_or_default()) / 1_000.0;
    json!({"lat": 52.5 + off, "lng": 13.4, "accuracy": 5, "place_name": format!("Place {number}"),
        "recorded_at": at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)})
}

fn update(person: &Person, body: Value, fixes: &[Value]) -> Command {
    // A fix that was sent before is already in the log.
    let expected = fixes.iter().map(|fix| {
        let held = json!({"user_id": person.id, "recorded_at": fix["recorded_at"]});
        ExpectedEvent::once("location.updated", held).times(Times::AtMostOnce)
    });
    let path = "/location/update".to_owned();
    post("positions", &person.token(), path, body, expected.collect())
}

async fn send(load: &Load, dice: &mut Dice, person: &Person, command: Command, cost: usize) {
    // Repeats would count again; how often, only the server knows.
    let command = Command {
        keyed: command.keyed && person.limit.is_none(),
        ..command
    };
    let sent = Instant::now();
    let outcome = load.client.command(dice, command).await;
    let Some(limit) = person.limit else { return };
    let who = format!("positions of {}", person.id);
    match outcome {
        Outcome::Acknowledged { .. } => {
            let cost = u64::try_from(cost).unwrap_or_default();
            let admitted = Admitted {
                sent,
                answered: Instant::now(),
                cost,
            };
            load.client.notes.limited(&who, limit, Some(admitted));
        }
        Outcome::Refused { status: 429 } => {
            load.client.notes.limited(&who, limit, None);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        _ => {}
    }
}

pub(super) async fn one(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    one_of(load, dice, person).await;
}

pub(super) async fn one_of(load: &Load, dice: &mut Dice, person: &Person) {
    let fix = fix(load, dice);
    let command = update(person, fix.clone(), &[fix]).keyed(dice, 40);
    let again = dice.chance(15).then(|| command.clone());
    send(load, dice, person, command, 1).await;
    if let Some(again) = again {
        send(
            load,
            dice,
            person,
            Command {
                keyed: false,
                ..again
            },
            1,
        )
        .await;
    }
}

pub(super) async fn several(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let count = 2 + dice.below(12);
    let fixes: Vec<_> = (0..count).map(|_| fix(load, dice)).collect();
    let command = update(person, Value::Array(fixes.clone()), &fixes).keyed(dice, 40);
    let again = dice.chance(30).then(|| command.clone());
    send(load, dice, person, command, count).await;
    if let Some(again) = again {
        send(
            load,
            dice,
            person,
            Command {
                keyed: false,
                ..again
            },
            count,
        )
        .await;
    }
}

/// Hides for a while, or shows again.
pub(super) async fn pause(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    if person.steady {
        return one(load, dice).await;
    }
    let held = json!({"accountId": person.id});
    let command = if dice.chance(50) {
        let until = Utc::now() + TimeDelta::seconds(30);
        let expected = ExpectedEvent::once("account.sharing_paused", held);
        let (path, body) = ("/location/pause".to_owned(), json!({"until": until}));
        post("hide", &person.token(), path, body, vec![expected])
    } else {
        let expected =
            ExpectedEvent::once("account.sharing_resumed", held).times(Times::AtMostOnce);
        let path = "/location/resume".to_owned();
        post(
            "show again",
            &person.token(),
            path,
            Value::Null,
            vec![expected],
        )
        .bare()
    };
    load.client.command(dice, command).await;
}
