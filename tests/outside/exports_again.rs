//! Repeated exports: unchanged files are not sent again. Also compressed exports.

use std::io::Read as _;

use flate2::read::GzDecoder;
use harness::{Answer, Client, Organization};
use reqwest::Method;
use serde_json::{Value, json};

use super::exports::{position_of, write};
use crate::system;

const EXPORT: &str = "/api/export/contacts";

fn contacts(count: usize) -> Vec<Value> {
    (0..count)
        .map(|nth| json!({"id": format!("c{nth:05}"), "email": format!("{nth}@x.y")}))
        .collect()
}

async fn reader(org: &Organization<'_>) -> Client {
    org.client(&["export:contacts:read"]).await
}

/// Sends a request with additional headers.
pub(super) async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = client.request(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::to(request).await
}

fn header(answer: &Answer, name: &str) -> String {
    let value = answer.header(name);
    value.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let org = system().await.organization().await;
    let position = write(&org, &contacts(3)).await;
    let client = reader(&org).await;
    for format in ["csv", "excel", "pdf"] {
        let path = format!("{EXPORT}?format={format}");
        let first = client.get_at(&path, &position).await;
        assert_eq!(first.status, 200);
        let tag = header(&first, "etag");
        assert_eq!(header(&first, "cache-control"), "private, no-cache");
        assert_eq!(
            header(&first, "vary"),
            "Accept-Encoding, Authorization, Cookie"
        );
        let list = format!("\"other\", W/{tag}");
        for known in [
            tag.as_str(),
            "*",
            if tag.starts_with('W') { &tag } else { &list },
        ] {
            let again = ask(&client, &path, &[("if-none-match", known)]).await;
            assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
            assert_eq!(header(&again, "etag"), tag);
        }
        let other = ask(&client, &path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.status, 200);
        assert_eq!(header(&other, "etag"), tag);
        let head = Answer::to(client.request(Method::HEAD, &path)).await;
        assert_eq!(header(&head, "etag"), tag);
    }
}

#[tokio::test]
async fn a_file_without_records_is_not_sent_again_either() {
    let org = system().await.organization().await;
    let position = position_of("deals", &org).await;
    let client = reader(&org).await;
    let first = client.get_at(EXPORT, &position).await;
    assert_eq!(first.status, 200);
    let (tag, moment) = (header(&first, "etag"), header(&first, "last-modified"));
    for known in [("if-none-match", &tag), ("if-modified-since", &moment)] {
        let again = ask(&client, EXPORT, &[(known.0, known.1)]).await;
        assert_eq!(again.status, 304, "{known:?}");
    }
    let position = write(&org, &contacts(1)).await;
    client.get_at(EXPORT, &position).await.text();
    let changed = ask(&client, EXPORT, &[("if-none-match", &tag)]).await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn every_change_makes_another_file() {
    let org = system().await.organization().await;
    let client = reader(&org).await;
    let position = write(&org, &contacts(2)).await;
    let mut known = Vec::new();
    let first = client.get_at(EXPORT, &position).await;
    known.push(header(&first, "etag"));
    let path = "/api/v1/records/contacts/c00000";
    let changed = org.admin.put(path, &json!({"email": "new@x.y"})).await;
    known.push(of(&client, &known, &changed.position()).await);
    let deleted = org.admin.delete(path).await;
    known.push(of(&client, &known, &deleted.position()).await);
    // The original contents, and yet newer.
    let back = json!({"id": "c00000", "email": "0@x.y"});
    let back = org.admin.post("/api/v1/records/contacts", &back).await;
    of(&client, &known, &back.position()).await;
}

/// The tag at a position, which must not be a known one.
async fn of(client: &Client, known: &[String], position: &str) -> String {
    let known = known.join(", ");
    let headers = [
        ("if-none-match", known.as_str()),
        ("waypost-min-position", position),
    ];
    let answer = ask(client, EXPORT, &headers).await;
    assert_eq!(answer.status, 200);
    header(&answer, "etag")
}

#[tokio::test]
async fn if_modified_since_gets_a_304_if_unchanged_and_if_none_match_overrides_it() {
    let org = system().await.organization().await;
    let client = reader(&org).await;
    let position = write(&org, &contacts(2)).await;
    // While the times of changes run ahead of the clock, only tags are recognized.
    let moment = harness::eventually("a time that is recognized", async || {
        let first = client.get_at(EXPORT, &position).await;
        let moment = header(&first, "last-modified");
        let again = ask(&client, EXPORT, &[("if-modified-since", &moment)]).await;
        (again.status == 304).then_some(moment)
    });
    let moment = moment.await;
    let since = ("if-modified-since", moment.as_str());
    let other = ("if-none-match", "\"other\"");
    assert_eq!(ask(&client, EXPORT, &[since, other]).await.status, 200);
    let later = ("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT");
    assert_eq!(ask(&client, EXPORT, &[later]).await.status, 200);
    // Perhaps in the same second, but still another version.
    let position = position_of("contacts", &org).await;
    let position = ("waypost-min-position", position.as_str());
    assert_eq!(ask(&client, EXPORT, &[since, position]).await.status, 200);
}

#[tokio::test]
async fn a_tag_is_of_one_organization_and_one_file_of_it() {
    let system = system().await;
    let (one, other) = (system.organization().await, system.organization().await);
    for org in [&one, &other] {
        let position = write(org, &contacts(1)).await;
        let client = reader(org).await;
        assert_eq!(client.get_at(EXPORT, &position).await.status, 200);
    }
    let (mine, theirs) = (reader(&one).await, reader(&other).await);
    let tag = header(&mine.get(EXPORT).await, "etag");
    let known = ("if-none-match", tag.as_str());
    assert_eq!(ask(&mine, EXPORT, &[known]).await.status, 304);
    assert_eq!(ask(&theirs, EXPORT, &[known]).await.status, 200);
    let excel = format!("{EXPORT}?format=excel");
    assert_eq!(ask(&mine, &excel, &[known]).await.status, 200);
    let packed = [known, ("accept-encoding", "gzip")];
    assert_eq!(ask(&mine, EXPORT, &packed).await.status, 200);
    // A caller without permission is refused, whatever they know.
    let without = one.client(&["export:deals:read"]).await;
    assert_eq!(ask(&without, EXPORT, &[known]).await.status, 403);
}

#[tokio::test]
async fn text_is_packed_for_those_who_ask() {
    let org = system().await.organization().await;
    let client = reader(&org).await;
    let position = write(&org, &contacts(5_000)).await;
    let plain = client.get_at(EXPORT, &position).await;
    assert_eq!(plain.header("content-encoding"), None);
    for (asked, coding) in [("gzip, deflate", "gzip"), ("gzip, zstd", "zstd")] {
        let packed = ask(&client, EXPORT, &[("accept-encoding", asked)]).await;
        assert_eq!(packed.status, 200);
        assert_eq!(packed.header("content-encoding"), Some(coding));
        assert_ne!(packed.header("etag"), plain.header("etag"), "other bytes");
        assert!(packed.body.len() * 3 < plain.body.len(), "{coding}");
        let mut text = Vec::new();
        match coding {
            "gzip" => drop(GzDecoder::new(&packed.body[..]).read_to_end(&mut text)),
            _ => text = zstd::decode_all(&packed.body[..]).unwrap(),
        }
        assert!(text == plain.body, "{coding}");
    }
    for format in ["excel", "pdf"] {
        let path = format!("{EXPORT}?format={format}");
        let answer = ask(&client, &path, &[("accept-encoding", "gzip, zstd")]).await;
        assert_eq!(answer.header("content-encoding"), None, "packed already");
    }
}
