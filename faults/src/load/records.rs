//! Records of all six kinds: posted, put, deleted, and as lines.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, post};
use crate::client::{Body, Command};
use crate::notes::{ExpectedEvent, Outcome, Times};
use crate::upload::Upload;
use crate::world::Org;
use hostile::Dice;

/// The kinds as named in paths and in events.
const KINDS: &[(&str, &str)] = &[
    ("companies", "company"),
    ("deals", "deal"),
    ("contacts", "contact"),
    ("orders", "order"),
    ("leads", "lead"),
    ("clients", "client"),
];
/// Records of a kind that several workers put and delete.
pub(super) const SHARED: usize = 25;
const STATUSES: &[&str] = &["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];

/// A record made unique by its number.
pub(super) fn record(kind: &str, number: u64, dice: &mut Dice) -> Value {
    let mark = format!("n{number}");
    let month = 1 + dice.below(12);
    let created = format!("2026-{month:02}-{:02}T10:00:00Z", 1 + dice.below(28));
    match kind {
        "companies" => json!({"name": mark, "domain": format!("{mark}.example"), "city": "Łódź",
            "employees": dice.below(5_000), "createdAt": created}),
        "deals" => json!({"title": mark, "amount": dice.below(1_000_000), "currency": "EUR",
            "probability": 12.5, "expectedCloseDate": "2026-12-24"}),
        "contacts" => json!({"firstName": "Zoë", "lastName": mark, "phone": "+4930123456",
            "email": format!("{mark}@example.org"), "createdAt": created}),
        "orders" => json!({"orderNumber": mark, "status": dice.pick(STATUSES),
            "amount": dice.below(100_000), "client": {"name": "Zoë", "email": "z@example.org"},
            "product": {"name": "Care"}, "createdAt": created}),
        "leads" => json!({"name": mark, "score": dice.below(100), "source": "fair"}),
        _ => json!({"name": mark, "company": "GmbH & Söhne", "isActive": dice.chance(50)}),
    }
}

/// A kind: its names in paths and in events.
pub(super) fn kind(dice: &mut Dice) -> (&'static str, &'static str) {
    dice.pick(KINDS).unwrap_or(("contacts", "contact"))
}

pub(super) async fn create(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let (kind, number) = (kind(dice), load.client.number());
    post_one(load, dice, org, kind, number).await;
}

pub(super) async fn post_one(
    load: &Load,
    dice: &mut Dice,
    org: &Org,
    (kind, event): (&str, &str),
    number: u64,
) {
    let mut body = record(kind, number, dice);
    if dice.chance(50) {
        body["id"] = format!("c{number}").into();
    }
    let expected = ExpectedEvent::once(&format!("{event}.created"), body.clone());
    let path = format!("/api/v1/records/{kind}");
    let command = post("post record", &org.key, path, body, vec![expected]).keyed(dice, 60);
    load.client.command(dice, command).await;
}

pub(super) async fn put(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let (kind, event) = kind(dice);
    let id = format!("s{}", dice.below(SHARED));
    let body = record(kind, load.client.number(), dice);
    let mut held = body.clone();
    held["id"] = id.clone().into();
    let expected =
        ExpectedEvent::once(&format!("{event}.created"), held).or(&format!("{event}.updated"));
    let path = format!("/api/v1/records/{kind}/{id}");
    let command = post("put record", &org.key, path, body, vec![expected]);
    let outcome = load.client.command(dice, command.by(Method::PUT)).await;
    if let Outcome::Acknowledged {
        position: Some(position),
        ..
    } = outcome
    {
        org.positions.add(position);
    }
}

pub(super) async fn delete(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let (kind, event) = kind(dice);
    let id = format!("s{}", dice.below(SHARED));
    let expected = ExpectedEvent::once(&format!("{event}.deleted"), json!({"id": id}));
    let path = format!("/api/v1/records/{kind}/{id}");
    let command = post("delete record", &org.key, path, Value::Null, vec![expected]);
    load.client
        .command(dice, command.by(Method::DELETE).bare())
        .await;
}

/// Many records in one request, each with its own response. Some appear twice in it, and some
/// requests break off in the middle.
pub(super) async fn lines(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let (kind, event) = kind(dice);
    let (mut lines, mut expected) = (Vec::new(), Vec::new());
    // Few have enough records for an export of them to come in pieces.
    let count = if dice.chance(5) { 300 } else { 3 };
    for _ in 0..count + dice.below(20) {
        let number = load.client.number();
        let mut line = record(kind, number, dice);
        match dice.below(10) {
            0..4 => line["id"] = format!("s{}", dice.below(SHARED)).into(),
            4..6 => {} // It gets one, and the same one whenever it is sent again.
            _ => line["id"] = format!("l{number}").into(),
        }
        // Whether each line was written is reported in its own line of the response.
        let one = ExpectedEvent::once(&format!("{event}.created"), line.clone());
        expected.push(one.or(&format!("{event}.updated")).times(Times::AtMostOnce));
        lines.push(line);
    }
    let upload = Upload::of(&lines, dice);
    let command = Command {
        name: upload.name(),
        method: Method::POST,
        path: format!("/api/v1/records/{kind}"),
        token: org.key.clone(),
        body: Body::Upload(upload),
        keyed: dice.chance(60),
        expected,
    };
    load.client.command(dice, command).await;
}
