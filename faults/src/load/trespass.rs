//! The hostile tenant tries to reach what belongs to others, with its key and its own token.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Load, nothing_to_do, post, records};
use crate::client::Command;
use crate::notes::{Complaint, ExpectedEvent, Outcome};
use crate::world::{Org, Person, text};
use hostile::Dice;

/// Kinds of records that it has none of, as exports name them.
const EXPORTED: &[&str] = &["companies", "deals", "contacts"];
const SHUT: &str = "what belongs to others was neither shown nor changed";

/// Deletes the hostile tenant's webhooks, so that nothing is sent in vain any more.
pub(crate) async fn end_webhooks(load: &Load, dice: &mut Dice) {
    let Some(neighbour) = &load.world.neighbour else {
        return;
    };
    let path = "/api/v1/webhooks?limit=100";
    let listed = load.client.read(dice, &neighbour.key, path, None).await;
    let listed = listed.map(|answer| answer.json()).unwrap_or_default();
    for webhook in listed["data"].as_array().into_iter().flatten() {
        let id = text(&webhook["id"]);
        let expected = vec![ExpectedEvent::once("webhook.deleted", json!({"id": id}))];
        let path = format!("/api/v1/webhooks/{id}");
        let command = post(
            "delete webhook",
            &neighbour.key,
            path,
            Value::Null,
            expected,
        );
        let command = command.bare().by(Method::DELETE);
        load.client.command(dice, command).await;
    }
}

/// Tries one thing that it is not allowed to do.
pub(super) async fn try_one(load: &Load, dice: &mut Dice) {
    let Some(neighbour) = &load.world.neighbour else {
        return nothing_to_do().await;
    };
    let own = Own {
        key: &neighbour.key,
        token: &load.world.trespasser,
    };
    match dice.below(3) {
        0 => read(load, dice, own).await,
        1 => look(load, dice, own).await,
        _ => change(load, dice, own).await,
    }
}

/// Its own credentials.
#[derive(Clone, Copy)]
struct Own<'a> {
    key: &'a str,
    /// Token of a person of its own.
    token: &'a str,
}

impl<'a> Own<'a> {
    /// The key for paths of organizations, the token for paths of persons.
    fn meant_for(self, path: &str) -> &'a str {
        if path.starts_with("/api/") {
            self.key
        } else {
            self.token
        }
    }

    /// Occasionally the other one.
    fn any_for(self, path: &str, dice: &mut Dice) -> &'a str {
        let (key, token) = (self.key, self.token);
        let own = if dice.chance(95) {
            self
        } else {
            Self {
                key: token,
                token: key,
            }
        };
        own.meant_for(path)
    }
}

/// Reads an item of another organization or person by its id.
async fn read(load: &Load, dice: &mut Dice, own: Own<'_>) {
    let (org, person) = (load.org(dice), load.person(dice));
    let Some(path) = readable(org, person, dice) else {
        return nothing_to_do().await;
    };
    let token = own.any_for(&path, dice);
    let answer = load.client.read(dice, token, &path, None).await;
    let shown = answer.filter(crate::client::Answer::is_success);
    judge(load, "GET", &path, shown.map(|answer| answer.json()));
}

/// Changes an item of another organization or person.
async fn change(load: &Load, dice: &mut Dice, own: Own<'_>) {
    let (org, person) = (load.org(dice), load.person(dice));
    let Some((method, path, body)) = changeable(org, person, dice) else {
        return nothing_to_do().await;
    };
    let told = format!("{method} {path}");
    let command = post("trespass", own.any_for(&path, dice), path, body, Vec::new());
    let command = Command { method, ..command };
    let changed = match load.client.command(dice, command).await {
        Outcome::Acknowledged { body, .. } => Some(body),
        Outcome::Refused { .. } | Outcome::Unknown => None,
    };
    judge(load, &told, "", changed);
}

/// Reads what it may read, through others' ids: the response must show only its own data.
async fn look(load: &Load, dice: &mut Dice, own: Own<'_>) {
    let Some((path, marks)) = visible(load, dice).await else {
        return nothing_to_do().await;
    };
    let token = own.meant_for(&path);
    let answer = load.client.read(dice, token, &path, None).await;
    let shown = answer.filter(crate::client::Answer::is_success);
    let text = shown.map(|shown| String::from_utf8_lossy(&shown.body).into_owned());
    let found = text.filter(|text| marks.iter().any(|mark| text.contains(mark)));
    judge(load, "GET", &path, found.map(Value::from));
}

fn judge(load: &Load, method: &str, path: &str, got: Option<Value>) {
    match got {
        None => load.client.notes.right(SHUT),
        Some(got) => load.client.notes.complain(Complaint {
            check: SHUT,
            what: format!("{method} {path}"),
            expected: "a refusal, or its own alone".to_owned(),
            found: got.to_string(),
        }),
    }
}

/// Something of others that its owners can read.
fn readable(org: &Org, person: &Person, dice: &mut Dice) -> Option<String> {
    Some(match dice.below(8) {
        0 => format!("/api/v1/runs/{}", org.runs.any(dice)?),
        1 => format!("/api/v1/webhooks/{}", org.webhooks.any(dice)?),
        2 => format!("/api/v1/webhooks/{}/deliveries", org.webhooks.any(dice)?),
        3 => format!("/location/history?user_id={}", person.id),
        4 => format!("/circles/{}/places", person.circles.any(dice)?),
        5 => "/api/v1/workflows/plain/runs".to_owned(),
        6 => record(dice),
        _ => "/api/v1/workflows/plain".to_owned(),
    })
}

/// A record that every organization of the load has and the tenant has not.
fn record(dice: &mut Dice) -> String {
    let (kind, _) = records::kind(dice);
    format!("/api/v1/records/{kind}/s{}", dice.below(records::SHARED))
}

/// A read of its own data through others' ids, and marks found only in theirs.
async fn visible(load: &Load, dice: &mut Dice) -> Option<(String, Vec<String>)> {
    let (org, person) = (load.org(dice), load.person(dice));
    let of_persons = || {
        let email = person.email.clone();
        vec![email, format!("\"user_id\":{},", person.id)]
    };
    Some(match dice.below(11) {
        0 => {
            let key = org.keys.any(dice)?;
            (format!("/api/v1/keys?q={key}"), vec![key])
        }
        1 => (
            "/api/v1/webhooks?q=hook&limit=100".to_owned(),
            vec![load.receiver.clone()],
        ),
        2 => (
            "/api/v1/workflows?limit=100".to_owned(),
            vec!["\"plain\"".to_owned()],
        ),
        3 => on_from_theirs(load, dice, org).await?,
        4 => after_theirs(load, dice, org).await?,
        5 => (
            "/api/v1/locations?limit=50".to_owned(),
            vec!["\"user_id\"".to_owned()],
        ),
        6 => {
            let (kind, since) = (dice.pick(EXPORTED)?, "updatedSince=2026-01-01T00:00:00Z");
            let path = format!("/api/export/{kind}?{since}");
            // It has none of these, and these prefixes are in the names of all of theirs.
            (
                path,
                vec!["\nc".to_owned(), "\nl".to_owned(), "\ns".to_owned()],
            )
        }
        // Few of these are admitted per minute, and the checker needs some too.
        7 if dice.chance(20) => {
            let kind = dice.pick(&["leads", "orders", "clients"])?;
            let path = format!("/api/v1/{kind}?q=n{}&limit=100", dice.below(10));
            (
                path,
                vec!["\"name\":\"n".to_owned(), "\"orderNumber\"".to_owned()],
            )
        }
        8 => ("/location/latest".to_owned(), of_persons()),
        9 => ("/location/trails".to_owned(), of_persons()),
        _ => ("/sos".to_owned(), of_persons()),
    })
}

/// Its own keys, continued from the end of a page of theirs.
async fn on_from_theirs(load: &Load, dice: &mut Dice, org: &Org) -> Option<(String, Vec<String>)> {
    let first = "/api/v1/keys?limit=1";
    let theirs = load.client.read(dice, &org.key, first, None).await?;
    let path = theirs.next?.replace("limit=1&", "limit=100&");
    let ids = load.client.read(dice, &org.key, &path, None).await?.json();
    let ids = ids["data"].as_array()?.iter();
    Some((path, ids.map(|key| text(&key["keyId"])).collect()))
}

/// Its own events, from a position of theirs.
async fn after_theirs(load: &Load, dice: &mut Dice, org: &Org) -> Option<(String, Vec<String>)> {
    let first = "/api/v1/events?limit=1&types=workflow.*";
    let theirs = load.client.read(dice, &org.key, first, None).await?;
    let position = text(&theirs.json()["position"]);
    if position.is_empty() {
        return None;
    }
    let path = format!("/api/v1/events?after={position}&limit=500");
    let marks = vec!["\"plain\"".to_owned(), load.receiver.clone()];
    Some((path, marks))
}

/// Something of others that its owners can change.
fn changeable(org: &Org, person: &Person, dice: &mut Dice) -> Option<(Method, String, Value)> {
    let nothing = json!({});
    let post = |path: String| (Method::POST, path, nothing.clone());
    let delete = |path: String| (Method::DELETE, path, nothing.clone());
    let webhook = |dice: &mut Dice, verb: &str| {
        let id = org.webhooks.any(dice)?;
        Some(format!("/api/v1/webhooks/{id}{verb}"))
    };
    Some(match dice.below(17) {
        0 => post(format!("/api/v1/runs/{}/cancel", org.runs.any(dice)?)),
        1 => post(format!("/api/v1/runs/{}/retry", org.runs.any(dice)?)),
        2 => post("/api/v1/workflows/plain/trigger".to_owned()),
        3 => delete(webhook(dice, "")?),
        4 => post(webhook(dice, "/rotate-secret")?),
        5 => delete(format!("/api/v1/keys/{}", org.keys.any(dice)?)),
        6 => post(format!(
            "/api/v1/circles/{}/invites",
            org.circles.any(dice)?
        )),
        7 => post(webhook(dice, "/test")?),
        8 => {
            let failed = json!({"failed": true});
            (Method::POST, webhook(dice, "/replay")?, failed)
        }
        9 => {
            let off = json!({"status": "DISABLED"});
            (Method::PATCH, webhook(dice, "")?, off)
        }
        10 => delete(record(dice)),
        11 => delete(format!("/api/v1/keys/{}?given=true", org.keys.any(dice)?)),
        12 => post(format!("/circles/{}/invites", person.circles.any(dice)?)),
        13 => {
            let place = json!({"name": "Theirs", "lat": 52.5, "lng": 13.4, "radius_m": 200});
            let path = format!("/circles/{}/places", person.circles.any(dice)?);
            (Method::POST, path, place)
        }
        14 => {
            let (circle, place) = person.places.any(dice)?;
            delete(format!("/circles/{circle}/places/{place}"))
        }
        15 => post(format!("/sos/{}/acknowledge", person.calls.any(dice)?)),
        _ => post(format!("/sos/{}/resolve", person.calls.any(dice)?)),
    })
}
