//! Circles of persons and of organizations, and the places that they watch.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, positions, post};
use crate::notes::{ExpectedEvent, Outcome, Times};
use crate::world::text;
use hostile::Dice;

pub(super) async fn of_org(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let body = json!({"name": format!("Couriers {}", load.client.number())});
    let expected = vec![ExpectedEvent::once("circle.created", body.clone())];
    let path = "/api/v1/circles".to_owned();
    let command = post("make circle", &org.key, path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.circles.add(text(&body["id"]));
    }
}

pub(super) async fn invite_of_org(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some(circle) = org.circles.any(dice) else {
        return nothing_to_do().await;
    };
    let expected = vec![ExpectedEvent::once(
        "circle.invite_made",
        json!({"circleId": circle}),
    )];
    let path = format!("/api/v1/circles/{circle}/invites");
    let command = post("invite", &org.key, path, Value::Null, expected).bare();
    let command = command.keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        org.codes.add(text(&body["code"]));
    }
}

pub(super) async fn make(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let body = json!({"name": format!("Circle {}", load.client.number())});
    let expected = vec![
        ExpectedEvent::once("circle.created", body.clone()),
        ExpectedEvent::once("circle.member_joined", json!({"user_id": person.id})),
    ];
    let path = "/circles".to_owned();
    let command = post("make circle", &person.token(), path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        person.circles.add(text(&body["id"]));
    }
}

pub(super) async fn invite(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let Some(circle) = person.circles.any(dice) else {
        return nothing_to_do().await;
    };
    let expected = vec![ExpectedEvent::once(
        "circle.invite_made",
        json!({"circleId": circle}),
    )];
    let path = format!("/circles/{circle}/invites");
    let command = post("invite", &person.token(), path, Value::Null, expected).bare();
    let command = command.keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        person.codes.add(text(&body["code"]));
    }
}

/// Joins a circle of another person or of an organization. Members stay members.
pub(super) async fn join(load: &Load, dice: &mut Dice) {
    let (person, other) = (load.person(dice), load.person(dice));
    let code = if dice.chance(40) {
        load.org(dice).codes.any(dice)
    } else {
        other.codes.any(dice)
    };
    let Some(code) = code else {
        return nothing_to_do().await;
    };
    let expected = ExpectedEvent::once("circle.member_joined", json!({"user_id": person.id}));
    let expected = vec![expected.times(Times::AtMostOnce)];
    let path = "/circles/join".to_owned();
    let body = json!({"code": code});
    let command = post("join", &person.token(), path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        person.circles.add(text(&body["circle_id"]));
    }
}

pub(super) async fn leave(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let Some(circle) = person.circles.take(dice) else {
        return nothing_to_do().await;
    };
    let expected = json!({"circle_id": circle, "user_id": person.id});
    let expected = vec![ExpectedEvent::once("circle.member_left", expected)];
    let path = format!("/circles/{circle}/members/me");
    let command = post("leave", &person.token(), path, Value::Null, expected);
    let command = command.by(Method::DELETE).bare();
    let left = load.client.command(dice, command).await;
    // The others must not be shown positions from now on.
    if matches!(left, Outcome::Acknowledged { .. }) && dice.chance(70) {
        positions::one_of(load, dice, person).await;
    }
}

pub(super) async fn add_place(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let Some(circle) = person.circles.any(dice) else {
        return nothing_to_do().await;
    };
    let body = json!({"name": format!("Place {}", load.client.number()), "lat": 52.5,
        "lng": 13.4, "radius_m": 100 + dice.below(400)});
    let mut held = body.clone();
    held["circleId"] = circle.clone().into();
    let expected = vec![ExpectedEvent::once("circle.place_added", held)];
    let path = format!("/circles/{circle}/places");
    let command = post("add place", &person.token(), path, body, expected).keyed(dice, 50);
    if let Outcome::Acknowledged { body, .. } = load.client.command(dice, command).await {
        person.places.add((circle, text(&body["id"])));
    }
}

pub(super) async fn remove_place(load: &Load, dice: &mut Dice) {
    let person = load.person(dice);
    let Some((circle, place)) = person.places.take(dice) else {
        return nothing_to_do().await;
    };
    let expected = json!({"circleId": circle, "placeId": place});
    let expected = vec![ExpectedEvent::once("circle.place_removed", expected)];
    let path = format!("/circles/{circle}/places/{place}");
    let command = post("remove place", &person.token(), path, Value::Null, expected);
    load.client
        .command(dice, command.by(Method::DELETE).bare())
        .await;
}
