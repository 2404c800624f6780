//! Keys created by keys: never more rights than the creator's, and revoked with it if asked to.

use std::time::Duration;

use harness::{Client, Organization, System, eventually, eventually_within};
use serde_json::{Value, json};

use crate::{SHAPE, system};

const KEYS: &str = "/api/v1/keys";
const A_SECOND: Duration = Duration::from_secs(1);

/// A key's client and its id.
struct Key {
    client: Client,
    id: String,
}

impl Key {
    /// Creates a key with another one, and waits until it is known everywhere.
    async fn given_by(giver: &Client, terms: &Value) -> Self {
        let made = giver.post(KEYS, terms).await.ok(201);
        let client = giver.with_key(made["key"].as_str().unwrap());
        let key = Self {
            client,
            id: made["keyId"].as_str().unwrap().to_owned(),
        };
        eventually("the key to be known", async || {
            key.works().await.then_some(())
        })
        .await;
        key
    }

    async fn works(&self) -> bool {
        let command = self.client.post_nothing("/api/v1/workflows/none/trigger");
        let query = self.client.get("/api/v1/runs/none");
        command.await.status != 401 && query.await.status != 401
    }

    async fn is_refused_everywhere(&self) -> bool {
        let command = self.client.post_nothing("/api/v1/workflows/none/trigger");
        let query = self.client.get("/api/v1/runs/none");
        command.await.status == 401 && query.await.status == 401
    }
}

fn manager() -> Value {
    json!({"name": "manager", "scopes": ["keys:manage", "read:leads"], "rateLimit": 100_000})
}

async fn listed(org: &Organization<'_>, id: &str) -> Value {
    let list = org.until(KEYS, |list| list.to_string().contains(id)).await;
    let mut keys = list["data"].as_array().unwrap().iter();
    keys.find(|key| key["keyId"] == id).unwrap().clone()
}

#[tokio::test]
async fn a_key_gives_no_higher_limit_and_no_longer_life_than_its_own() {
    let org = system().await.organization().await;
    let end = "2999-01-01T00:00:00Z";
    let terms = json!({"name": "m", "scopes": ["keys:manage"], "rateLimit": 50, "expiresAt": end});
    let giver = Key::given_by(&org.admin, &terms).await;
    let wanted = |more: Value| {
        let mut terms = json!({"name": "given", "scopes": ["keys:manage"]});
        terms
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        terms
    };
    for (more, field) in [
        (json!({"rateLimit": 51}), "rateLimit"),
        (json!({"expiresAt": "2999-01-01T00:00:01Z"}), "expiresAt"),
        (
            json!({"rateLimit": 51, "expiresAt": end, "name": ""}),
            "rateLimit",
        ),
    ] {
        let refused = giver.client.post(KEYS, &wanted(more)).await.error(403);
        assert!(refused.starts_with(field), "{refused}");
    }
    let same = json!({"rateLimit": 50, "expiresAt": end});
    giver.client.post(KEYS, &wanted(same)).await.ok(201);
    let left_out = giver.client.post(KEYS, &wanted(json!({}))).await.ok(201);
    let given = listed(&org, left_out["keyId"].as_str().unwrap()).await;
    assert_eq!(
        (&given["rateLimit"], &given["createdBy"]),
        (&json!(50), &json!(giver.id))
    );
    assert!(
        given["expiresAt"]
            .as_str()
            .unwrap()
            .starts_with("2999-01-01T00:00:00")
    );
    // The operator is not limited, and a key without an expiry creates ones without.
    let free = listed(&org, &giver.id).await;
    assert_eq!(free["rateLimit"], 50);
}

#[tokio::test]
async fn what_a_key_cannot_give_is_said_before_what_is_wrong() {
    let org = system().await.organization().await;
    let giver = Key::given_by(&org.admin, &manager()).await;
    for terms in [
        json!({"scopes": ["admin"]}),
        json!({"name": 7, "scopes": ["read:orders"], "colour": "red"}),
        json!({"name": "n", "scopes": ["read:orders", "no:such"], "expiresAt": "soon"}),
    ] {
        giver.client.post(KEYS, &terms).await.error(403);
    }
    for terms in [
        json!({"scopes": ["read:leads"]}),
        json!({"name": "n"}),
        json!({"name": "n", "scopes": ["no:such"]}),
    ] {
        giver.client.post(KEYS, &terms).await.error(400);
    }
}

#[tokio::test]
async fn revoking_takes_along_what_a_key_gave_where_asked() {
    let org = system().await.organization().await;
    let giver = Key::given_by(&org.admin, &manager()).await;
    let child = Key::given_by(&giver.client, &manager()).await;
    let grandchild = Key::given_by(&child.client, &manager()).await;
    let beside = Key::given_by(&org.admin, &manager()).await;
    let path = format!("{KEYS}/{}", giver.id);
    org.admin
        .delete(&format!("{path}?given=perhaps"))
        .await
        .error(400);
    let ended = org.admin.delete(&format!("{path}?given=true")).await;
    ended.ok(204);
    for key in [&giver, &child, &grandchild] {
        eventually_within(A_SECOND, "the key to stop working everywhere", async || {
            key.is_refused_everywhere().await.then_some(())
        })
        .await;
    }
    assert!(beside.works().await);
    let list = org.admin.get_at(KEYS, &ended.position()).await.ok(200);
    assert_eq!(list["total"], 2, "{list}");
    org.admin
        .delete(&format!("{path}?given=true"))
        .await
        .error(404);
}

#[tokio::test]
async fn what_a_revoked_key_gave_goes_on_until_it_is_ended_too() {
    let org = system().await.organization().await;
    let giver = Key::given_by(&org.admin, &manager()).await;
    let child = Key::given_by(&giver.client, &manager()).await;
    let grandchild = Key::given_by(&child.client, &manager()).await;
    let path = format!("{KEYS}/{}", giver.id);
    org.admin.delete(&path).await.ok(204);
    org.admin
        .delete(&format!("{KEYS}/{}", child.id))
        .await
        .ok(204);
    eventually_within(A_SECOND, "both to stop working", async || {
        let both = giver.is_refused_everywhere().await && child.is_refused_everywhere().await;
        both.then_some(())
    })
    .await;
    assert!(grandchild.works().await);
    org.admin.delete(&path).await.error(404);
    // If the first one is later found to be stolen, all keys that came of it are revoked.
    let revoke = ["key", "revoke", "--org", &org.id, &giver.id, "--given"];
    org.system.waypost(&revoke).await;
    eventually_within(A_SECOND, "the last to stop working", async || {
        grandchild.is_refused_everywhere().await.then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_outlives_a_key_that_gives_while_it_is_revoked() {
    // At the end its log is read from the first event.
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let giver = Key::given_by(&org.admin, &manager()).await;
    let giving = async {
        let mut given = Vec::new();
        loop {
            let made = giver.client.post(KEYS, &manager()).await;
            match made.status.as_u16() {
                201 => given.push(made.json()["key"].as_str().unwrap().to_owned()),
                status => break (status, given),
            }
        }
    };
    let revoking = async {
        eventually("some keys to be given", async || {
            let list = org.admin.get(KEYS).await.ok(200);
            (list["total"].as_u64()? > 6).then_some(())
        })
        .await;
        let path = format!("{KEYS}/{}?given=true", giver.id);
        org.admin.delete(&path).await.ok(204);
    };
    let ((status, given), ()) = tokio::join!(giving, revoking);
    assert_eq!(status, 401);
    assert!(given.len() > 4);
    eventually_within(A_SECOND, "all of them to stop working", async || {
        for key in &given {
            let client = giver.client.with_key(key);
            let command = client.post_nothing("/api/v1/workflows/none/trigger").await;
            let query = client.get("/api/v1/runs/none").await;
            if command.status != 401 || query.status != 401 {
                return None;
            }
        }
        Some(())
    })
    .await;
    let verified = system.waypost(&["projection", "verify", "api_keys"]).await;
    assert_eq!(verified["differences"], json!(0), "{verified}");
}

/// The value of a metric, summed over all processes.
async fn metric(system: &System, name: &str) -> f64 {
    let mut sum = 0.0;
    for (_, client) in system.clients() {
        let text = client.get("/metrics").await.text();
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(known, _)| *known == name);
        sum += found.map_or(0.0, |(_, figure)| figure.parse::<f64>().unwrap());
    }
    sum
}

#[tokio::test]
async fn expired_keys_are_dropped_from_memory() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let held = async || metric(&system, "waypost_keys_held").await;
    let before = eventually("the first key to be held", async || {
        let held = held().await;
        (held >= 1.0).then_some(held)
    })
    .await;
    let expires_at = chrono::Utc::now() + chrono::TimeDelta::seconds(3);
    for _ in 0..20 {
        let mut terms = manager();
        terms["expiresAt"] = json!(expires_at.to_rfc3339());
        org.admin.post(KEYS, &terms).await.ok(201);
    }
    assert!(held().await > before);
    eventually("all but the first to be let go of", async || {
        (held().await <= before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_organization_has_so_many_keys() {
    let few = [("WAYPOST_KEYS_PER_ORGANIZATION", "3")];
    let system = System::start(SHAPE, &few).await;
    let org = system.organization().await;
    let second = Key::given_by(&org.admin, &manager()).await;
    Key::given_by(&second.client, &manager()).await;
    let refused = org.admin.post(KEYS, &manager()).await.error(409);
    assert!(refused.contains("revoke keys"), "{refused}");
    org.admin
        .post(KEYS, &json!({"scopes": []}))
        .await
        .error(400);
    assert!(metric(&system, "waypost_keys_refused_total").await >= 1.0);
    let path = format!("{KEYS}/{}", second.id);
    org.admin.delete(&path).await.ok(204);
    eventually("a place to be free", async || {
        let made = org.admin.post(KEYS, &manager()).await;
        (made.status == 201).then_some(())
    })
    .await;
}
