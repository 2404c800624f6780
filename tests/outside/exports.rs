//! `GET /api/export/contacts` as CSV.

use harness::{Answer, Client, Organization, eventually};
use serde_json::{Value, json};

use super::ndjson;
use crate::system;

const EXPORT: &str = "/api/export/contacts";
const HEADER: &str = "id,firstName,lastName,email,phone,jobTitle,companyId,companyName,city,country,\
                      owner,createdAt,updatedAt";

/// Writes contacts and returns the position at which reads see them.
pub(super) async fn write(org: &Organization<'_>, records: &[Value]) -> String {
    write_of("contacts", org, records).await
}

/// Writes records of a kind and returns the position at which reads see them.
pub(super) async fn write_of(kind: &str, org: &Organization<'_>, records: &[Value]) -> String {
    let lines = ndjson(records.iter().cloned());
    let path = format!("/api/v1/records/{kind}");
    let answer = org.admin.post_bytes(&path, "application/x-ndjson", lines);
    let answer = answer.await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("\"error\""), "{}", answer.text());
    position_of(kind, org).await
}

/// A position after all previous writes to a kind.
pub(super) async fn position_of(kind: &str, org: &Organization<'_>) -> String {
    let least = match kind {
        "deals" => json!({"title": "marker"}),
        "contacts" => json!({"email": "m@m.m"}),
        "orders" => json!({"orderNumber": "marker", "status": "CANCELLED", "amount": 0}),
        _ => json!({"name": "marker"}),
    };
    let path = format!("/api/v1/records/{kind}/marker");
    org.admin.put(&path, &least).await.ok(201);
    org.admin.delete(&path).await.position()
}

/// Waits until reads see a contact at a position, retrying as often as needed.
pub(super) async fn until_read(org: &Organization<'_>, contact: &str, position: &str) {
    let path = format!("/api/v1/records/contacts/{contact}");
    eventually("contacts to be read", async || {
        let answer = org.admin.get_at(&path, position).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[track_caller]
fn rows(answer: &Answer) -> Vec<csv::StringRecord> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    assert!(!text.starts_with('\u{feff}'), "no byte-order mark");
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some(HEADER));
    assert!(text.ends_with("\r\n"));
    let mut reader = csv::ReaderBuilder::new()
        .flexible(false)
        .from_reader(text.as_bytes());
    reader
        .records()
        .collect::<Result<_, _>>()
        .expect("RFC 4180")
}

fn ids(rows: &[csv::StringRecord]) -> Vec<&str> {
    rows.iter().map(|row| &row[0]).collect()
}

async fn reader(org: &Organization<'_>) -> Client {
    org.client(&["export:contacts:read"]).await
}

#[tokio::test]
async fn an_organization_without_contacts_exports_the_header() {
    let org = system().await.organization().await;
    let answer = reader(&org).await.get(EXPORT).await;
    assert_eq!(answer.text(), format!("{HEADER}\r\n"));
}

#[tokio::test]
async fn a_file_says_what_it_is() {
    let org = system().await.organization().await;
    let client = reader(&org).await;
    for (query, kind, extension) in [
        ("", "text/csv; charset=utf-8", "csv"),
        ("?format=csv", "text/csv; charset=utf-8", "csv"),
        ("?format=crm", "text/csv; charset=utf-8", "csv"),
        ("?format=", "text/csv; charset=utf-8", "csv"),
        ("?format=docx", "text/csv; charset=utf-8", "csv"),
        ("?format=PDF", "text/csv; charset=utf-8", "csv"),
        ("?format=%00&x=%ff", "text/csv; charset=utf-8", "csv"),
        (
            "?format=excel",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "xlsx",
        ),
        ("?format=pdf", "application/pdf", "pdf"),
    ] {
        let before = chrono::Utc::now().date_naive();
        let answer = client.get(&format!("{EXPORT}{query}")).await;
        let after = chrono::Utc::now().date_naive();
        assert_eq!(answer.status, 200, "{query}");
        assert_eq!(answer.header("content-type"), Some(kind), "{query}");
        let disposition = answer.header("content-disposition").unwrap();
        let named = |day| format!("attachment; filename=\"contacts-{day}.{extension}\"");
        assert!(
            [named(before), named(after)].contains(&disposition.to_owned()),
            "{disposition}"
        );
    }
}

#[tokio::test]
async fn rows_come_newest_first_then_by_id() {
    let org = system().await.organization().await;
    let made = |id: &str, at: &str| json!({"id": id, "email": "a", "createdAt": at});
    let position = write(
        &org,
        &[
            made("b", "2020-01-01T00:00:00Z"),
            made("old", "1999-12-31T23:59:59Z"),
            made("a", "2020-01-01T00:00:00Z"),
            made("new", "2030-01-01T00:00:00.5Z"),
            made("B", "2020-01-01T01:00:00+01:00"),
        ],
    )
    .await;
    let answer = reader(&org).await.get_at(EXPORT, &position).await;
    let rows = rows(&answer);
    assert_eq!(ids(&rows), ["new", "B", "a", "b", "old"]);
    let moment = |text: &str| chrono::DateTime::parse_from_rfc3339(text).unwrap();
    assert_eq!(moment(&rows[0][11]), moment("2030-01-01T00:00:00.5Z"));
    assert_eq!(moment(&rows[1][11]), moment("2020-01-01T00:00:00Z"));
    assert!(rows.iter().all(|row| row[11].ends_with('Z')));
}

#[tokio::test]
async fn every_text_survives_and_absent_fields_are_empty() {
    let org = system().await.organization().await;
    let texts = [
        "plain",
        "with, comma",
        "with \"quotes\"",
        "line\nbreak",
        "carriage\r\nreturn",
        " spaces ",
        "Ünïcödé 🚲",
        "trailing\\",
        "a;b\tc",
        "null",
    ];
    let records: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(nth, text)| json!({"id": format!("t{nth}"), "lastName": text, "city": null}))
        .collect();
    let position = write(&org, &records).await;
    let answer = reader(&org).await.get_at(EXPORT, &position).await;
    let rows = rows(&answer);
    for (nth, text) in texts.iter().enumerate() {
        let id = format!("t{nth}");
        let row = rows.iter().find(|row| row[0] == id).unwrap();
        assert_eq!(&row[2], *text);
        assert_eq!((&row[1], &row[8]), ("", ""));
    }
}

#[tokio::test]
async fn no_cell_is_a_formula_to_a_spreadsheet() {
    let org = system().await.organization().await;
    let guarded = [
        "=1+1",
        "=HYPERLINK(\"http://x\",\"y\")",
        "+1 (555) 0100",
        "+cmd",
        "-1+1",
        "--1",
        "-",
        "+",
        "@SUM(A1)",
        "\tx",
        "\rx",
        "\nx",
        "-1,5",
        "+49 30 1234",
        "+0123456",
        "+1234567890123456",
        "-0x1F",
        "-1e",
        "=",
    ];
    let exempt = [
        "-5",
        "-5.25",
        "5",
        "-1e3",
        "+4930123456",
        "+15550100",
        "a=b",
        "'=1",
        "0",
        // Only a cell's start counts, and only the plain signs.
        "foo;=1+1;",
        "foo\t=1+1",
        "foo\n@SUM(A1)",
        "＝1+1",
        "＠SUM(A1)",
    ];
    let records: Vec<_> = guarded
        .iter()
        .chain(&exempt)
        .enumerate()
        .map(|(nth, text)| json!({"id": format!("{nth:02}"), "email": "e", "phone": text}))
        .collect();
    let position = write(&org, &records).await;
    let answer = reader(&org).await.get_at(EXPORT, &position).await;
    let mut rows = rows(&answer);
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    for (row, text) in rows.iter().zip(guarded) {
        assert_eq!(&row[4], format!("'{text}"));
    }
    for (row, text) in rows[guarded.len()..].iter().zip(exempt) {
        assert_eq!(&row[4], text);
    }
    // The caller's own ids are cells like any other.
    let position = write(&org, &[json!({"id": "=id", "email": "@e"})]).await;
    let text = reader(&org).await.get_at(EXPORT, &position).await.text();
    assert!(text.contains("\r\n'=id,,,'@e,"), "{text}");
}

#[tokio::test]
async fn another_organizations_contacts_are_never_in_it() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let of = |owner: &str| {
        let made = |nth| json!({"id": format!("c{nth}"), "email": "a", "owner": owner});
        (0..50).map(made).collect::<Vec<_>>()
    };
    let mine = write(&org, &of("mine")).await;
    let theirs = write(&other, &of("theirs")).await;
    let first = org.admin.get_at(EXPORT, &theirs).await;
    let second = other.admin.get_at(EXPORT, &mine).await;
    for (answer, owner) in [(first, "mine"), (second, "theirs")] {
        let rows = rows(&answer);
        assert_eq!(rows.len(), 50);
        assert!(rows.iter().all(|row| &row[10] == owner));
    }
}

#[tokio::test]
async fn an_export_is_refused_only_for_want_of_key_scope_or_room() {
    let org = system().await.organization().await;
    let nobody = org.system.client();
    for format in ["csv", "excel", "pdf", "nonsense"] {
        let path = format!("{EXPORT}?format={format}");
        nobody.get(&path).await.error(401);
        let terms = json!({"name": "n", "scopes": ["export:deals:read"], "rateLimit": 1});
        let (client, _) = org.unused_key(&terms).await;
        let message = client.get(&path).await.error(403);
        assert!(message.contains("export:contacts:read"), "{message}");
        client.get(&path).await.error(429);
    }
}

#[tokio::test]
async fn a_file_is_one_moment_of_the_contacts_while_they_change() {
    const ROWS: usize = 20_000;
    let org = system().await.organization().await;
    let records: Vec<_> = (0..ROWS)
        .map(|nth| {
            json!({"id": format!("{nth:05}"), "email": "a@b.c", "city": "before",
                "createdAt": "2020-01-01T00:00:00Z"})
        })
        .collect();
    let position = write(&org, &records).await;
    let client = reader(&org).await;
    rows(&client.get_at(EXPORT, &position).await);

    // One writer changes the contacts in order, each after the other was confirmed: at any time the
    // changed ones are the first ones.
    let change = async {
        for nth in 0..600 {
            let path = format!("/api/v1/records/contacts/{nth:05}");
            let body = json!({"email": "a@b.c", "city": "after"});
            org.admin.put(&path, &body).await.ok(200);
        }
    };
    let exports = async {
        let mut seen = Vec::new();
        while seen.last() != Some(&600) {
            let answer = client.get(EXPORT).await;
            let rows = rows(&answer);
            assert_eq!(rows.len(), ROWS);
            let changed = rows.iter().take_while(|row| &row[8] == "after").count();
            let expected = |nth| if nth < changed { "after" } else { "before" };
            for (nth, row) in rows.iter().enumerate() {
                assert_eq!(&row[0], format!("{nth:05}"));
                assert_eq!(&row[8], expected(nth), "row {nth} of {changed} changed");
            }
            seen.push(changed);
        }
        seen
    };
    let ((), seen) = tokio::join!(change, exports);
    assert!(seen.is_sorted(), "{seen:?}");
}
