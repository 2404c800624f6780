//! `/api/v1/records/contacts`: one record at a time.

use chrono::{DateTime, Utc};
use harness::Organization;
use serde_json::{Value, json};

use crate::system;

const CONTACTS: &str = "/api/v1/records/contacts";

fn time(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().expect("a time");
    let time = DateTime::parse_from_rfc3339(text).expect("RFC 3339");
    assert!(text.ends_with('Z'), "{text} is not in UTC");
    time.to_utc()
}

fn path_of(id: &str) -> String {
    let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("{CONTACTS}/{}", id.replace('+', "%20"))
}

/// Reads a record as it is after a command.
async fn read_at(org: &Organization<'_>, id: &str, position: &str) -> Value {
    org.admin.get_at(&path_of(id), position).await.ok(200)
}

#[tokio::test]
async fn a_record_is_made_and_read_back_whole() {
    let org = system().await.organization().await;
    let before = Utc::now();
    let given = json!({
        "id": "c-1", "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org",
        "phone": "+44 20 7946 0000", "jobTitle": "Analyst", "companyId": "k1",
        "companyName": "Engines & Sons", "city": "London", "country": "UK", "owner": "cb",
    });
    let answer = org.admin.post(CONTACTS, &given).await;
    assert_eq!(answer.ok(201), json!({"id": "c-1"}));
    let mut read = read_at(&org, "c-1", &answer.position()).await;
    let fields = read.as_object_mut().unwrap();
    let created_at = time(&fields.remove("createdAt").unwrap());
    let updated_at = time(&fields.remove("updatedAt").unwrap());
    assert_eq!(read, given);
    assert!((updated_at - created_at).num_seconds().abs() < 2);
    assert!((created_at - before).num_seconds().abs() < 60);
}

#[tokio::test]
async fn absent_fields_read_as_null_and_an_id_is_made_up() {
    let org = system().await.organization().await;
    let answer = org.admin.post(CONTACTS, &json!({"lastName": "L"})).await;
    let id = answer.ok(201)["id"].as_str().unwrap().to_owned();
    uuid::Uuid::parse_str(&id).expect("a UUID");
    let read = read_at(&org, &id, &answer.position()).await;
    for name in [
        "firstName",
        "email",
        "phone",
        "jobTitle",
        "companyId",
        "companyName",
        "city",
        "country",
        "owner",
    ] {
        assert_eq!(read.get(name), Some(&Value::Null), "{name}");
    }
    assert_eq!(read.as_object().unwrap().len(), 13);
}

#[tokio::test]
async fn making_what_exists_is_a_conflict_until_it_is_deleted() {
    let org = system().await.organization().await;
    let ada = json!({"id": "x", "firstName": "Ada"});
    org.admin.post(CONTACTS, &ada).await.ok(201);
    org.admin.post(CONTACTS, &ada).await.error(409);
    let deleted = org.admin.delete(&path_of("x")).await;
    deleted.ok(204);
    assert!(deleted.body.is_empty());
    let gone = org.admin.get_at(&path_of("x"), &deleted.position()).await;
    gone.error(404);
    org.admin.delete(&path_of("x")).await.error(404);
    org.admin.post(CONTACTS, &ada).await.ok(201);
}

#[tokio::test]
async fn put_makes_or_replaces() {
    let org = system().await.organization().await;
    let path = path_of("p");
    let first =
        json!({"firstName": "Ada", "city": "London", "createdAt": "2020-01-02T03:04:05+01:00"});
    assert_eq!(org.admin.put(&path, &first).await.ok(201)["id"], "p");
    let second = org
        .admin
        .put(&path, &json!({"id": "p", "lastName": "Hopper"}))
        .await;
    assert_eq!(second.ok(200)["id"], "p");
    let read = read_at(&org, "p", &second.position()).await;
    assert_eq!(
        (&read["firstName"], &read["city"], &read["lastName"]),
        (&Value::Null, &Value::Null, &json!("Hopper"))
    );
    assert_eq!(
        time(&read["createdAt"]).to_rfc3339(),
        "2020-01-02T02:04:05+00:00",
        "what was given first is kept"
    );
    assert!(time(&read["updatedAt"]) > time(&read["createdAt"]));
    let other = json!({"id": "q", "lastName": "H"});
    assert!(org.admin.put(&path, &other).await.error(400).contains("id"));
}

#[tokio::test]
async fn a_command_that_changes_nothing_answers_like_one_that_does() {
    let org = system().await.organization().await;
    let path = path_of("same");
    org.admin
        .put(&path, &json!({"email": "a@b.c"}))
        .await
        .ok(201);
    let again = org.admin.put(&path, &json!({"email": "a@b.c"})).await;
    again.ok(200);
    read_at(&org, "same", &again.position()).await;
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let org = system().await.organization().await;
    for (body, named) in [
        (json!({}), "email"),
        (json!({"phone": "+49"}), "email"),
        (json!({"firstName": " ", "email": ""}), "email"),
        (json!({"firstName": 7}), "firstName"),
        (json!({"firstName": {"a": 1}}), "firstName"),
        (json!({"email": ["a@b.c"]}), "email"),
        (json!({"email": "a", "shoeSize": 41}), "shoeSize"),
        (json!({"email": "a", "first_name": "A"}), "first_name"),
        (json!({"email": "a", "createdAt": "yesterday"}), "createdAt"),
        (
            json!({"email": "a", "createdAt": 1_700_000_000}),
            "createdAt",
        ),
        (json!({"email": "a", "id": 7}), "id"),
        (json!({"email": "a", "id": ""}), "id"),
        (json!({"email": "a", "id": "x".repeat(129)}), "id"),
        (json!({"email": "a", "city": "nul \u{0}"}), "city"),
        (json!([]), ""),
        (json!("text"), ""),
        (json!(null), ""),
    ] {
        let posted = org.admin.post(CONTACTS, &body).await;
        assert_eq!(posted.status, 400, "{body}");
        let message = posted.error(400);
        assert!(message.contains(named), "{body}: {message}");
        let put = org.admin.put(&path_of("w"), &body).await;
        assert_eq!(put.status, 400, "PUT {body}");
        put.error(400);
    }
    for body in ["", "{", "{\"email\":\"a\"} x"] {
        let answer = org
            .admin
            .post_bytes(CONTACTS, "application/json", body)
            .await;
        answer.error(400);
    }
}

#[tokio::test]
async fn an_id_is_the_callers_whatever_it_looks_like() {
    let org = system().await.organization().await;
    let long = "ä".repeat(128);
    for id in [
        "a/b",
        "..",
        ".",
        "a b",
        " ",
        "a+b",
        "100%",
        "a.b.c",
        "*",
        ">",
        "a?b#c",
        "Straße 🚲",
        "%2F",
        "-",
        "a\\b",
        "'; DROP TABLE contacts; --",
        &long,
    ] {
        // A dot segment is not addressable: URLs drop it in any notation.
        if id.chars().all(|c| c == '.') {
            let named = json!({"id": id, "email": "a"});
            org.admin.post(CONTACTS, &named).await.ok(201);
            continue;
        }
        let path = path_of(id);
        let put = org.admin.put(&path, &json!({"lastName": "L"})).await;
        assert_eq!(put.status, 201, "{id}: {}", put.text());
        assert_eq!(put.json()["id"], id);
        let read = read_at(&org, id, &put.position()).await;
        assert_eq!(read["id"], id);
        let clash = json!({"id": id, "email": "b"});
        org.admin.post(CONTACTS, &clash).await.error(409);
        org.admin.delete(&path).await.ok(204);
    }
    let longer = path_of(&"ä".repeat(129));
    org.admin
        .put(&longer, &json!({"email": "a"}))
        .await
        .error(400);
}

#[tokio::test]
async fn a_kind_that_nobody_knows_is_not_found() {
    let org = system().await.organization().await;
    let path = "/api/v1/records/spaceships";
    let ship = json!({"name": "Rocinante"});
    org.admin.post(path, &ship).await.error(404);
    org.admin.put(&format!("{path}/r"), &ship).await.error(404);
    org.admin.get(&format!("{path}/r")).await.error(404);
    org.admin.delete(&format!("{path}/r")).await.error(404);
    let lines = org.admin.post_bytes(path, "application/x-ndjson", "{}\n");
    lines.await.error(404);
}

#[tokio::test]
async fn a_read_sees_what_was_written_before_its_position() {
    let org = system().await.organization().await;
    for nth in 0..30 {
        let city = format!("City {nth}");
        let body = json!({"email": "a@b.c", "city": city});
        let written = org.admin.put(&path_of("ryw"), &body).await;
        assert!(written.status.is_success());
        let read = read_at(&org, "ryw", &written.position()).await;
        assert_eq!(read["city"], city);
    }
}

#[tokio::test]
async fn a_position_that_is_none_is_refused() {
    let org = system().await.organization().await;
    for position in ["", "x", "0", "-1", "e1", "18446744073709551616"] {
        let answer = org.admin.get_at("/api/v1/workflows", position).await;
        assert_eq!(answer.status, 400, "{position}");
        answer.error(400);
    }
}
