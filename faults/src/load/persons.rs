//! Calls for help, and accounts.

use serde_json::{Value, json};

use super::{Load, nothing_to_do, post};
use crate::notes::{ExpectedEvent, Outcome, Times};
use crate::world::text;
use hostile::Dice;

pub(super) async fn call_for_help(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let message = format!("Help {}", load.client.number());
    let body = json!({"lat": 52.5, "lng": 13.4, "message": message});
    // One of the person's own, and one for each organization that may know.
    let expected = json!({"user_id": person.id, "message": message});
    let expected = vec![ExpectedEvent::once("sos.triggered", expected).times(Times::Some)];
    let path = "/sos/trigger".to_owned();
    let command = post("call for help", &person.token(), path, body, expected).keyed(dice, 60);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        person.calls.add(text(&body["sos_id"]));
    }
}

pub(super) async fn answer_a_call(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let Some(call) = person.calls.any(dice) else {
        return nothing_to_do().await;
    };
    let (verb, event) = if dice.chance(50) {
        ("acknowledge", "sos.acknowledged")
    } else {
        ("resolve", "sos.resolved")
    };
    let expected = vec![ExpectedEvent::once(event, json!({"sos_id": call})).times(Times::Some)];
    let path = format!("/sos/{call}/{verb}");
    let command = post(
        "answer a call",
        &person.token(),
        path,
        Value::Null,
        expected,
    );
    let command = command.bare().keyed(dice, 50);
    load.client.command(dice, command).await;
}

/// Signs out with one token and in for another.
pub(super) async fn sign_in_again(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    if person.steady {
        return nothing_to_do().await; // Readers of sockets hold these tokens.
    }
    let expected = vec![ExpectedEvent::once(
        "account.signed_out",
        json!({"accountId": person.id}),
    )];
    let path = "/auth/logout".to_owned();
    let command = post("sign out", &person.token(), path, Value::Null, expected).bare();
    load.client.command(dice, command).await;
    sign_in(load, dice, person).await;
}

async fn sign_in(load: &Load, dice: &mut Dice, person: &crate::world::Person) {
    for _ in 0..40 {
        let body = json!({"email": person.email, "password": person.password()});
        let command = post("sign in", "", "/auth/login".to_owned(), body, Vec::new());
        match load.client.command(dice, command).await {
            Outcome::Acknowledged { body, .. } => {
                return person.signed_in(&text(&body["access_token"]));
            }
            // Another worker may currently be changing the password.
            Outcome::Refused { .. } | Outcome::Unknown => {}
        }
        tokio::time::sleep(dice.millis(50..400)).await;
    }
}

/// The new password counts once it is acknowledged; an unknown outcome is resolved by its key.
pub(super) async fn change_password(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    if person.steady {
        return nothing_to_do().await;
    }
    let new = format!("a password {}", load.client.number());
    let body = json!({"old": person.password(), "new": new});
    let expected = json!({"accountId": person.id});
    let expected = vec![ExpectedEvent::once("account.password_changed", expected)];
    let path = "/auth/password".to_owned();
    let command = post("change password", &person.token(), path, body, expected).keyed(dice, 100);
    let outcome = load.client.command(dice, command).await;
    if let Outcome::Acknowledged { body, .. } = outcome {
        person.changed_password(&new);
        person.signed_in(&text(&body["access_token"]));
    }
}

/// Two registrations of one address at the same time: at most one of them may succeed.
pub(super) async fn register_twice(load: &Load, dice: &mut Dice) {
    let number = load.client.number();
    let email = format!("twin{number}@example.org");
    let register = |name: &str, dice: &mut Dice| {
        let body = json!({"name": name, "email": email, "password": "a long password"});
        let expected = json!({"name": name, "email": email});
        let expected = vec![ExpectedEvent::once("account.registered", expected)];
        let path = "/auth/register".to_owned();
        post("register", "", path, body, expected).keyed(dice, 50)
    };
    let mut others = dice.of("twin");
    let (one, two) = (register("First", dice), register("Second", dice));
    let (one, two) = tokio::join!(
        load.client.command(dice, one),
        load.client.command(&mut others, two),
    );
    let opened = |outcome: &Outcome| matches!(outcome, Outcome::Acknowledged { .. });
    if opened(&one) && opened(&two) {
        load.client.notes.complain(crate::notes::Complaint {
            check: "an address belongs to one account",
            what: email,
            expected: "one registration to succeed".to_owned(),
            found: "both did".to_owned(),
        });
    }
}
