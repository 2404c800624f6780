//! Exports of what changed since a given time.

use harness::{Client, Organization};
use serde_json::{Value, json};

use super::exports::{position_of, write_of};
use super::exports_again::ask;
use crate::system;

/// A record of a kind, with the field that distinguishes its events.
fn record(kind: &str, id: &str, text: &str) -> Value {
    match kind {
        "companies" => json!({"id": id, "name": text}),
        "deals" => json!({"id": id, "title": text}),
        _ => json!({"id": id, "firstName": text}),
    }
}

/// The rows of an export by their columns.
async fn rows(client: &Client, path: &str, position: &str) -> Vec<Value> {
    let answer = client.get_at(path, position).await;
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize::<std::collections::BTreeMap<String, String>>();
    rows.map(|row| json!(row.expect("a row"))).collect()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["id"].as_str()).collect()
}

async fn delete(org: &Organization<'_>, kind: &str, id: &str) {
    let path = format!("/api/v1/records/{kind}/{id}");
    org.admin.delete(&path).await.ok(204);
}

#[tokio::test]
async fn an_export_since_a_moment_holds_what_was_written_and_deleted() {
    let org = system().await.organization().await;
    for kind in ["companies", "deals", "contacts"] {
        let path = format!("/api/export/{kind}");
        let first = ["a", "b", "c", "d"].map(|id| record(kind, id, "first"));
        let position = write_of(kind, &org, &first).await;
        let all = rows(&org.admin, &path, &position).await;
        assert_eq!(all.len(), 4, "{kind}");
        assert!(all[0].get("deletedAt").is_none(), "{kind}: {}", all[0]);
        // The marker record used to await the writes was deleted last.
        let since = format!("{path}?updatedSince=2026-01-01T00:00:00Z");
        let before = rows(&org.admin, &since, &position).await;
        assert_eq!(before.len(), 5, "{kind}");
        let newest = before[4]["deletedAt"].as_str().expect("a time").to_owned();
        // One written, one deleted, and one deleted and rewritten.
        write_of(kind, &org, &[record(kind, "b", "second")]).await;
        delete(&org, kind, "c").await;
        delete(&org, kind, "d").await;
        write_of(kind, &org, &[record(kind, "d", "third")]).await;
        write_of(kind, &org, &[record(kind, "e", "first")]).await;
        let position = position_of(kind, &org).await;

        let since = format!("{path}?updatedSince={newest}");
        let changed = rows(&org.admin, &since, &position).await;
        assert_eq!(ids(&changed), ["b", "c", "d", "e", "marker"], "{kind}");
        for row in &changed {
            let deleted = ["c", "marker"].contains(&row["id"].as_str().unwrap());
            assert_eq!(row["deletedAt"] != "", deleted, "{kind}: {row}");
            assert_eq!(row["updatedAt"] == "", deleted, "{kind}: {row}");
        }
        let text = |row: &Value| row.to_string().contains("second");
        assert!(text(&changed[0]), "{kind}: {}", changed[0]);

        // Unchanged files are not sent again, and other times are other files.
        let answer = org.admin.get_at(&since, &position).await;
        let name = answer.header("content-disposition").expect("a name");
        assert!(name.contains(&format!("\"{kind}-20")), "{name}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = ask(&org.admin, &since, &[("if-none-match", tag.as_str())]).await;
        assert_eq!(again.status, 304, "{kind}");
        let other = format!("{path}?updatedSince=2026-01-01T00:00:00Z");
        let again = ask(&org.admin, &other, &[("if-none-match", tag.as_str())]).await;
        assert_eq!(again.status, 200, "{kind}");
        for format in ["excel", "pdf"] {
            let document = format!("{since}&format={format}");
            assert_eq!(org.admin.get(&document).await.status, 200, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_moment_that_is_none_is_refused_by_name() {
    let org = system().await.organization().await;
    for query in [
        "updatedSince=yesterday",
        "updatedSince=2026-02-30T00:00:00Z",
        "updatedSince=2026-01-01T00:00:00Z&updatedSince=2026-01-01T00:00:00Z",
        "format=crm&updatedSince=2026-01-01T00:00:00Z",
    ] {
        let answer = org
            .admin
            .get(&format!("/api/export/companies?{query}"))
            .await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains("updatedSince: "), "{query}");
    }
}

#[tokio::test]
async fn of_a_record_that_was_forgotten_no_deletion_is_exported() {
    let system = system().await;
    let org = system.organization().await;
    let position = write_of(
        "contacts",
        &org,
        &[record("contacts", "ada-lovelace", "Ada")],
    )
    .await;
    let since = "/api/export/contacts?updatedSince=2026-01-01T00:00:00Z";
    let told = rows(&org.admin, since, &position).await;
    assert_eq!(ids(&told), ["ada-lovelace", "marker"]);
    let forget = ["forget", "--org", &org.id, "contacts", "ada-lovelace"];
    system.waypost(&forget).await;
    let told = rows(&org.admin, since, &position).await;
    assert_eq!(ids(&told), ["marker"]);
}
