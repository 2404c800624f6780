//! `/api/v1/records/{kind}` of every kind.

use harness::{Client, Organization};
use serde_json::{Value, json};

use super::ndjson;
use crate::system;

/// A kind of record as a caller sees it.
struct Kind {
    name: &'static str,
    /// A record with every field, without its id.
    whole: Value,
    /// A record with only the required fields.
    least: Value,
    /// Values of omitted fields, where they are not null.
    defaults: Value,
    /// A field with an invalid value.
    wrong: (&'static str, Value),
}

impl Kind {
    fn path(&self) -> String {
        format!("/api/v1/records/{}", self.name)
    }

    fn path_of(&self, id: &str) -> String {
        format!("/api/v1/records/{}/{id}", self.name)
    }

    /// A record with only the required fields as it is read, but for its times.
    fn read_of_least(&self, id: &str) -> Value {
        let mut read = self.whole.clone();
        for (name, value) in read.as_object_mut().unwrap() {
            let least = self.least.get(name).or(self.defaults.get(name));
            *value = least.cloned().unwrap_or_default();
        }
        with_id(&read, id)
    }
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "companies",
            whole: json!({
                "name": "Engines & Söhne", "domain": "engines.example", "industry": "Steam",
                "phone": "+44 20 7946 0000", "email": "hello@engines.example",
                "address": "1 Dorset Street", "city": "London", "country": "UK",
                "employees": 12, "annualRevenue": 9_007_199_254_740_992_i64, "owner": "cb"
            }),
            least: json!({"name": "Engines"}),
            defaults: json!({}),
            wrong: ("employees", json!("twelve")),
        },
        Kind {
            name: "deals",
            whole: json!({
                "title": "A difference engine", "stage": "negotiation", "amount": 1_750_000,
                "currency": "GBP", "probability": 62.5, "companyId": "k1",
                "companyName": "Engines", "contactId": "c1", "contactName": "Ada", "owner": "cb",
                "expectedCloseDate": "2026-02-28"
            }),
            least: json!({"title": "An engine"}),
            defaults: json!({}),
            wrong: ("probability", json!(101)),
        },
        Kind {
            name: "contacts",
            whole: json!({
                "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org",
                "phone": "+44 1", "jobTitle": "Analyst", "companyId": "k1",
                "companyName": "Engines", "city": "London", "country": "UK", "owner": "cb"
            }),
            least: json!({"email": "a@b.c"}),
            defaults: json!({}),
            wrong: ("city", json!(7)),
        },
        Kind {
            name: "orders",
            whole: json!({
                "orderNumber": "2026-0001", "status": "COMPLETED", "amount": -4_999,
                "plan": "yearly", "client": {"name": "Ada", "email": "ada@example.org"},
                "product": {"name": "Engine"}
            }),
            least: json!({"orderNumber": "2", "status": "PAYMENT_PENDING", "amount": 0}),
            defaults: json!({
                "client": {"name": null, "email": null}, "product": {"name": null}
            }),
            wrong: ("status", json!("PAID")),
        },
        Kind {
            name: "leads",
            whole: json!({
                "name": "Ada", "phone": "+44 1", "email": "ada@example.org",
                "service": "Analysis", "source": "web", "status": "NEW", "score": 80
            }),
            least: json!({"name": "Ada"}),
            defaults: json!({"score": 0}),
            wrong: ("score", json!(1.5)),
        },
        Kind {
            name: "clients",
            whole: json!({
                "name": "Ada", "email": "ada@example.org", "phone": "+44 1",
                "company": "Engines", "city": "London", "isActive": false
            }),
            least: json!({"name": "Ada"}),
            defaults: json!({"isActive": true}),
            wrong: ("isActive", json!("yes")),
        },
    ]
}

fn with_id(record: &Value, id: &str) -> Value {
    let mut record = record.clone();
    record["id"] = json!(id);
    record
}

/// Reads a record as it is after a command, with its times separately.
async fn read_at(client: &Client, path: &str, position: &str) -> (Value, [String; 2]) {
    let mut read = client.get_at(path, position).await.ok(200);
    let fields = read.as_object_mut().unwrap();
    let times = ["createdAt", "updatedAt"].map(|name| {
        let time = fields.remove(name).expect("a time");
        let time = time.as_str().expect("text").to_owned();
        assert!(time.ends_with('Z'), "{time}");
        time
    });
    (read, times)
}

#[tokio::test]
async fn every_kind_is_made_replaced_and_deleted() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let (all, one) = (kind.path(), kind.path_of("r"));
        let whole = with_id(&kind.whole, "r");
        org.admin.get(&one).await.error(404);
        org.admin.delete(&one).await.error(404);

        let made = org.admin.post(&all, &whole).await;
        assert_eq!(made.ok(201), json!({"id": "r"}));
        let (read, [created_at, _]) = read_at(&org.admin, &one, &made.position()).await;
        assert_eq!(read, whole, "{}", kind.name);
        org.admin.post(&all, &kind.whole).await.ok(201);
        org.admin.post(&all, &whole).await.error(409);

        let same = org.admin.put(&one, &whole).await;
        assert_eq!(same.ok(200)["id"], "r");
        assert_eq!(same.position(), made.position(), "nothing was written");

        let replaced = org.admin.put(&one, &kind.least).await;
        replaced.ok(200);
        let (read, [kept, changed]) = read_at(&org.admin, &one, &replaced.position()).await;
        assert_eq!(read, kind.read_of_least("r"), "{}", kind.name);
        assert_eq!(kept, created_at);
        assert!(changed > created_at);

        let deleted = org.admin.delete(&one).await;
        deleted.ok(204);
        let gone = org.admin.get_at(&one, &deleted.position()).await;
        gone.error(404);
        org.admin.put(&one, &kind.least).await.ok(201);
    }
}

#[tokio::test]
async fn what_is_read_can_be_written_back() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let one = kind.path_of("r");
        let mut whole = kind.whole.clone();
        whole["createdAt"] = json!("2020-01-31T23:59:59.123456Z");
        let made = org.admin.put(&one, &whole).await;
        made.ok(201);
        let read = org.admin.get_at(&one, &made.position()).await.ok(200);
        assert_eq!(read["createdAt"], whole["createdAt"]);
        let same = org.admin.put(&one, &read).await;
        same.ok(200);
        assert_eq!(same.position(), made.position(), "{}", kind.name);
    }
}

#[tokio::test]
async fn what_is_wrong_is_named_whatever_the_kind() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let mut wrong = kind.least.clone();
        wrong[kind.wrong.0] = kind.wrong.1.clone();
        let mut unknown = kind.least.clone();
        unknown["shoeSize"] = json!(41);
        let needed = kind.least.as_object().unwrap().keys().next().unwrap();
        let mut empty = kind.least.clone();
        empty[needed] = json!("");
        let other_id = with_id(&kind.least, "other");
        for (body, named) in [
            (&wrong, kind.wrong.0),
            (&unknown, "shoeSize"),
            (&empty, needed),
        ] {
            let message = org.admin.post(&kind.path(), body).await.error(400);
            assert!(message.contains(named), "{body}: {message}");
        }
        let message = org
            .admin
            .put(&kind.path_of("r"), &other_id)
            .await
            .error(400);
        assert!(message.contains("id"), "{message}");
    }
}

#[tokio::test]
async fn lines_of_every_kind_are_answered() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let mut wrong = with_id(&kind.least, "w");
        wrong[kind.wrong.0] = kind.wrong.1.clone();
        let lines = ndjson([
            with_id(&kind.whole, "a"),
            with_id(&kind.whole, "a"),
            wrong,
            with_id(&kind.least, "a"),
        ]);
        let answer = org
            .admin
            .post_bytes(&kind.path(), "application/x-ndjson", lines)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let answers: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(
            answers[0],
            json!({"line": 1, "id": "a", "status": "created"})
        );
        assert_eq!(
            answers[1],
            json!({"line": 2, "id": "a", "status": "unchanged"})
        );
        let error = answers[2]["error"].as_str().expect("a reason");
        assert!(error.contains(kind.wrong.0), "{error}");
        assert_eq!(
            answers[3],
            json!({"line": 4, "id": "a", "status": "updated"})
        );
        let least = kind.read_of_least("a");
        let least = least.as_object().unwrap();
        org.until(&kind.path_of("a"), |read| {
            least.iter().all(|(name, value)| read[name] == *value)
        })
        .await;
    }
}

#[tokio::test]
async fn a_repeated_key_makes_one_record_of_any_kind() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let (path, key) = (kind.path(), kind.name);
        let first = org.admin.post_once(&path, key, &kind.least).await;
        let again = org.admin.post_once(&path, key, &kind.least).await;
        assert_eq!(again.ok(201), first.ok(201));
        assert_eq!(again.position(), first.position());
        let other = org.admin.post_once(&path, key, &kind.whole).await;
        other.error(409);
    }
}

#[tokio::test]
async fn organizations_with_the_same_ids_keep_their_own_records() {
    let system = system().await;
    let (owner, other) = (system.organization().await, system.organization().await);
    for kind in kinds() {
        let one = kind.path_of("same");
        let theirs = owner.admin.put(&one, &kind.whole).await;
        theirs.ok(201);
        other
            .admin
            .get_at(&one, &theirs.position())
            .await
            .error(404);
        other.admin.delete(&one).await.error(404);
        let own = other.admin.put(&one, &kind.least).await;
        own.ok(201);
        let (read, _) = read_at(&other.admin, &one, &own.position()).await;
        assert_eq!(read, kind.read_of_least("same"));
        let deleted = other.admin.delete(&one).await;
        deleted.ok(204);
        let (kept, _) = read_at(&owner.admin, &one, &deleted.position()).await;
        assert_eq!(kept, with_id(&kind.whole, "same"));
    }
}

#[tokio::test]
async fn records_are_for_keys_that_may_write_them() {
    let system = system().await;
    let org = system.organization().await;
    let reader = org.client(&["read:orders", "events:read"]).await;
    for kind in kinds() {
        let (all, one) = (kind.path(), kind.path_of("r"));
        let answers = async |client: &Client| {
            [
                client.post(&all, &kind.least).await,
                client.put(&one, &kind.least).await,
                client.get(&one).await,
                client.delete(&one).await,
            ]
        };
        for answer in answers(&reader).await {
            let message = answer.error(403);
            assert!(message.contains("records:write"), "{message}");
        }
        for answer in answers(&system.client()).await {
            answer.error(401);
        }
        org.admin.get(&all).await.error(405);
        let writer = org.client(&["records:write"]).await;
        writer.put(&one, &kind.least).await.ok(201);
    }
}

/// A record's fields as named in a file, with their cells.
fn cells(record: &Value) -> Vec<(String, String)> {
    let mut cells = Vec::new();
    for (name, value) in record.as_object().unwrap() {
        match value {
            Value::Object(_) => {
                let within = self::cells(value).into_iter();
                cells.extend(within.map(|(part, cell)| (format!("{name}.{part}"), cell)));
            }
            Value::String(text) => cells.push((name.clone(), text.clone())),
            Value::Null => cells.push((name.clone(), String::new())),
            other => cells.push((name.clone(), other.to_string())),
        }
    }
    cells
}

async fn import(org: &Organization<'_>, kind: &Kind, content: &[u8]) -> Value {
    let arguments = ["import", "--org", &org.id, kind.name, "-"];
    let done = org.system.waypost_reading(&arguments, content).await;
    assert_eq!(done["rejected"], 0, "{done}");
    done
}

#[tokio::test]
async fn files_of_every_kind_are_imported_again_and_again() {
    let org = system().await.organization().await;
    for kind in kinds() {
        let (whole, least) = (with_id(&kind.whole, "a"), kind.read_of_least("b"));
        let mut file = csv::Writer::from_writer(Vec::new());
        file.write_record(cells(&whole).iter().map(|(name, _)| name))
            .unwrap();
        for record in [&whole, &least] {
            file.write_record(cells(record).iter().map(|(_, cell)| cell))
                .unwrap();
        }
        let file = file.into_inner().unwrap();
        let mut positions = Vec::new();
        // The same records as lines of JSON do not change anything either.
        let lines = ndjson([whole.clone(), least.clone()]);
        for content in [&file[..], &file[..], lines.as_bytes()] {
            let done = import(&org, &kind, content).await;
            assert_eq!(done["imported"], 2, "{done}");
            positions.push(done["position"].as_str().unwrap().to_owned());
        }
        let first = &positions[0];
        assert!(
            positions.iter().all(|position| position == first),
            "{positions:?}"
        );
        for (id, expected) in [("a", &whole), ("b", &least)] {
            let (read, _) = read_at(&org.admin, &kind.path_of(id), first).await;
            assert_eq!(read, *expected, "{}", kind.name);
        }
    }
}
