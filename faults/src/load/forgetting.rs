//! Persons who register, leave personal data wherever they can, and then have themselves forgotten.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::{Load, post};
use crate::client::Command;
use crate::notes::{Complaint, ExpectedEvent, Forgotten, Outcome, Times};
use crate::world::text;
use hostile::Dice;

/// Prefix of everything that they leave, so that it is found wherever it is stored.
pub(crate) const MARK: &str = "forget-me-";
const PASSWORD: &str = "a long password";
const FREE: &str = "addresses of forgotten persons that were free again";

/// A person who will be forgotten.
struct Guest {
    id: u64,
    token: String,
    mark: String,
    circle: Option<String>,
}

/// One after the other, each with the previous one's address, until the load is over.
pub(super) async fn come_and_go(load: Arc<Load>, mut dice: Dice) {
    let mut address: Option<String> = None;
    while !load.client.is_over() {
        let was_free = address.is_some();
        let email = address.take();
        let email = email.unwrap_or_else(|| format!("guest{}@example.org", load.client.number()));
        if let Some(mut guest) = register(&load, &mut dice, &email, was_free).await {
            for _ in 0..2 + dice.below(5) {
                leave_something(&load, &mut dice, &mut guest).await;
            }
            if forget(&load, &mut dice, &guest).await {
                address = Some(email);
            }
        }
        tokio::time::sleep(dice.millis(100..1_000)).await;
    }
}

async fn register(load: &Load, dice: &mut Dice, email: &str, was_free: bool) -> Option<Guest> {
    let mark = format!("{MARK}{}-", load.client.number());
    let body = json!({"name": mark, "email": email, "password": PASSWORD});
    // What is sealed in it cannot be read any more once they are forgotten.
    let expected = vec![ExpectedEvent::once("account.registered", json!({}))];
    let path = "/auth/register".to_owned();
    let command = post("register a guest", "", path, body, expected).keyed(dice, 100);
    let body = match load.client.command(dice, command).await {
        Outcome::Acknowledged { body, .. } => body,
        Outcome::Refused { status } if was_free => {
            load.client.notes.complain(Complaint {
                check: FREE,
                what: email.to_owned(),
                expected: "an account".to_owned(),
                found: status.to_string(),
            });
            return None;
        }
        Outcome::Refused { .. } | Outcome::Unknown => return None,
    };
    if was_free {
        load.client.notes.right(FREE);
    }
    Some(Guest {
        id: body["user"]["id"].as_u64()?,
        token: text(&body["access_token"]),
        mark,
        circle: None,
    })
}

async fn leave_something(load: &Load, dice: &mut Dice, guest: &mut Guest) {
    let Some(command) = trace(load, dice, guest) else {
        return;
    };
    let makes_circle = command.path == "/circles";
    let command = command.keyed(dice, 50);
    let outcome = load.client.command(dice, command).await;
    if let (Outcome::Acknowledged { body, .. }, true) = (outcome, makes_circle) {
        guest.circle = Some(text(&body["id"]));
    }
}

fn trace(load: &Load, dice: &mut Dice, guest: &Guest) -> Option<Command> {
    let theirs = json!({"user_id": guest.id});
    let post = |name, path: &str, body, expected| {
        Some(post(
            name,
            &guest.token,
            path.to_owned(),
            body,
            vec![expected],
        ))
    };
    match dice.below(6) {
        0 => {
            let body = json!({"name": guest.mark});
            let joined = ExpectedEvent::once("circle.member_joined", theirs);
            let mut command = post("make circle", "/circles", body, joined)?;
            command
                .expected
                .push(ExpectedEvent::once("circle.created", json!({})));
            Some(command)
        }
        1 => {
            let circle = guest.circle.as_ref()?;
            let body = json!({"name": guest.mark, "lat": 52.5, "lng": 13.4, "radius_m": 200});
            let expected = ExpectedEvent::once("circle.place_added", json!({"circleId": circle}));
            post(
                "add place",
                &format!("/circles/{circle}/places"),
                body,
                expected,
            )
        }
        2 => {
            let code = load.org(dice).codes.any(dice)?;
            let expected =
                ExpectedEvent::once("circle.member_joined", theirs).times(Times::AtMostOnce);
            post("join", "/circles/join", json!({"code": code}), expected)
        }
        3 => {
            let body = json!({"lat": 52.5, "lng": 13.4, "message": guest.mark});
            let expected = ExpectedEvent::once("sos.triggered", theirs).times(Times::Some);
            post("call for help", "/sos/trigger", body, expected)
        }
        4 => {
            let expected = json!({"accountId": guest.id});
            let expected = ExpectedEvent::once("account.sharing_paused", expected);
            let body = json!({"until": Utc::now() + TimeDelta::seconds(2)});
            post("hide", "/location/pause", body, expected)
        }
        _ => {
            // These are erased.
            let expected = ExpectedEvent::once("location.updated", theirs).times(Times::AtMostOnce);
            post(
                "leave a position",
                "/location/update",
                position(load, guest),
                expected,
            )
        }
    }
}

fn position(load: &Load, guest: &Guest) -> Value {
    let micros = i64::try_from(load.client.number()).unwrap_or_default() % 1_000_000;
    let at = Utc::now() - TimeDelta::microseconds(micros);
    json!({"lat": 52.5, "lng": 13.4, "place_name": guest.mark, "recorded_at": at})
}

/// Whether the deletion was acknowledged.
async fn forget(load: &Load, dice: &mut Dice, guest: &Guest) -> bool {
    let body = json!({"password": PASSWORD});
    let expected = vec![
        ExpectedEvent::once("account.forgotten", json!({"accountId": guest.id})),
        // The runs that the guest's calls for help began.
        ExpectedEvent::once("run.forgotten", json!({})).times(Times::Some),
    ];
    let path = "/auth/delete".to_owned();
    let command = post("forget", &guest.token, path, body, expected).keyed(dice, 100);
    let outcome = load.client.command(dice, command).await;
    let is_forgotten = matches!(outcome, Outcome::Acknowledged { .. });
    if is_forgotten {
        load.client.notes.forgotten(Forgotten {
            id: guest.id,
            token: guest.token.clone(),
            mark: guest.mark.clone(),
        });
    }
    is_forgotten
}
