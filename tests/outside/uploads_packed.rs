//! Uploads as CSV, and compressed uploads.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{Answer, Client, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::connections::told;
use super::ndjson;
use crate::system;

const PATH: &str = "/api/v1/records/contacts";
const CSV: &str = "text/csv; charset=utf-8";
const NDJSON: &str = "application/x-ndjson";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn pack(coding: &str, text: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => gzip(text),
        _ => zstd::encode_all(text, 3).unwrap(),
    }
}

async fn send(client: &Client, kind: &str, coding: &str, body: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, PATH);
    let request = request.header("content-type", kind);
    let request = request.header("content-encoding", coding);
    Answer::to(request.body(body)).await
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("NDJSON")
}

async fn stored(client: &Client, id: &str, position: &str) -> Value {
    client
        .get_at(&format!("{PATH}/{id}"), position)
        .await
        .ok(200)
}

#[tokio::test]
async fn a_csv_is_taken_row_by_row() {
    let org = system().await.organization().await;
    let rows = "\u{feff}city,id,firstName,email\r\n\
                \"Two\nlines, \"\"quoted\"\"\",a,Ada,ada@x.y\r\n\
                \r\n\
                ,nobody,,\r\n\
                Rome,b,Bea,b@x.y,surplus\r\n\
                Oslo,c,Zoë,";
    let answer = org.admin.post_bytes(PATH, CSV, rows).await;
    let found = lines(&answer);
    assert_eq!(found[0], json!({"line": 2, "id": "a", "status": "created"}));
    assert_eq!(found[1]["line"], 4);
    assert!(
        found[1]["error"].as_str().unwrap().starts_with("email: "),
        "{found:?}"
    );
    assert_eq!(
        found[2],
        json!({"line": 5, "error": "has 5 cells, the header row has 4"})
    );
    assert_eq!(found[3], json!({"line": 6, "id": "c", "status": "created"}));
    assert_eq!(found.len(), 4);
    let ada = stored(&org.admin, "a", &answer.position()).await;
    assert_eq!(ada["city"], "Two\nlines, \"quoted\"");
    let again = lines(&org.admin.post_bytes(PATH, CSV, rows).await);
    assert_eq!(again[0]["status"], "unchanged");
}

#[tokio::test]
async fn a_quotation_mark_within_a_cell_of_a_csv_is_text() {
    let org = system().await.organization().await;
    let rows = "id,firstName,city,email\n\
                a,Ada,5\" pipe,ada@x.y\n\
                b,Bea,5\" pipe,\"b@x.y\"\n\
                c,Zoë,\"Z\"\"o\në\",c@x.y\n";
    let answer = org.admin.post_bytes(PATH, CSV, rows).await;
    let found = lines(&answer);
    let ids = ["a", "b", "c"].into_iter().zip(2..);
    let expected = ids.map(|(id, line)| json!({"line": line, "id": id, "status": "created"}));
    assert_eq!(found, expected.collect::<Vec<_>>());
    for (id, field, expected) in [
        ("a", "city", "5\" pipe"),
        ("b", "email", "b@x.y"),
        ("c", "city", "Z\"o\në"),
    ] {
        let stored = stored(&org.admin, id, &answer.position()).await;
        assert_eq!(stored[field], expected, "{stored}");
    }
}

#[tokio::test]
async fn cells_are_separated_by_semicolons_or_tabs_if_the_header_row_is() {
    let org = system().await.organization().await;
    for (id, delimiter) in [("a", ";"), ("b", "\t")] {
        let rows = format!("id|firstName|city\n{id}|\"Ada|Bea\"|Bergen, NO\n");
        let rows = rows.replace('|', delimiter);
        let answer = org.admin.post_bytes(PATH, CSV, rows).await;
        assert_eq!(lines(&answer)[0]["status"], "created", "{}", answer.text());
        let stored = stored(&org.admin, id, &answer.position()).await;
        assert_eq!(stored["firstName"], format!("Ada{delimiter}Bea"));
        assert_eq!(stored["city"], "Bergen, NO");
    }
}

#[tokio::test]
async fn a_header_row_that_does_not_fit_is_refused_with_its_column() {
    let org = system().await.organization().await;
    for (rows, reason) in [
        ("id,shoeSize\n1,42\n", "shoeSize: "),
        ("id,id\n1,2\n", "id: appears twice"),
        ("", "header row: is missing"),
        ("\n\n", "header row: is missing"),
    ] {
        let answer = org.admin.post_bytes(PATH, CSV, rows).await;
        let refusal = answer.ok(400);
        let error = refusal["error"].as_str().unwrap();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[tokio::test]
async fn a_repeat_of_a_csv_gets_its_first_answers() {
    let org = system().await.organization().await;
    let send = async |rows: &'static str| {
        let request = org.admin.request(Method::POST, PATH);
        let request = request.header("content-type", CSV);
        let request = request.header("idempotency-key", "csv-1");
        Answer::to(request.body(rows)).await
    };
    let first = lines(&send("firstName\nAda\nBea\n").await);
    assert_eq!(lines(&send("firstName\nAda\nBea\n").await), first);
    // The same rows under another header mean something else.
    let other = send("lastName\nAda\nBea\n").await.error(409);
    assert!(other.contains("Idempotency-Key"), "{other}");
}

#[tokio::test]
async fn what_comes_packed_is_taken_as_if_it_had_not() {
    let org = system().await.organization().await;
    for coding in ["gzip", "zstd"] {
        let records = (0..3_000)
            .map(|nth| json!({"id": format!("{coding}{nth}"), "email": format!("{nth}@x.y")}));
        let body = pack(coding, ndjson(records).as_ref());
        let answer = send(&org.admin, NDJSON, coding, body).await;
        let found = lines(&answer);
        assert_eq!(found.len(), 3_000);
        assert!(found.iter().all(|line| line["status"] == "created"));
        let rows = format!("id,email\n{coding}-csv,a@b.c\n");
        let answer = send(&org.admin, CSV, coding, pack(coding, rows.as_bytes())).await;
        assert_eq!(lines(&answer)[0]["status"], "created");
        let id = format!("{coding}-csv");
        assert_eq!(
            stored(&org.admin, &id, &answer.position()).await["email"],
            "a@b.c"
        );
    }
}

#[tokio::test]
async fn what_is_not_packed_as_it_says_is_refused() {
    let org = system().await.organization().await;
    let line = b"{\"email\": \"a@b.c\"}\n";
    for coding in ["gzip", "zstd"] {
        let answer = send(&org.admin, NDJSON, coding, line.to_vec()).await;
        let refusal = answer.ok(400);
        assert!(
            refusal["error"]
                .as_str()
                .unwrap()
                .contains("Content-Encoding"),
            "{refusal}"
        );
    }
    for coding in ["br", "gzip, zstd", "deflate"] {
        send(&org.admin, NDJSON, coding, line.to_vec())
            .await
            .ok(400);
    }
}

#[tokio::test]
async fn what_unpacks_to_more_than_a_request_may_bring_is_ended() {
    let settings = [("WAYPOST_UPLOAD_BYTES", "20000000")];
    let system = System::start(system().await.shape(), &settings).await;
    let org = system.organization().await;
    // It contains no record, so that nothing else would end it.
    let blank = vec![b'\n'; 200_000_000];
    for coding in ["gzip", "zstd"] {
        let body = pack(coding, &blank);
        assert!(body.len() < 300_000);
        let found = lines(&send(&org.admin, NDJSON, coding, body).await);
        let error = found[0]["error"].as_str().unwrap();
        assert!(error.contains("at most 20000000 bytes"), "{error}");
        assert_eq!(found.len(), 1);
    }
}

/// A frame that asks for a window of 8 MiB and holds one block, which is not compressed.
fn zstd_with_largest_window(text: &str) -> Vec<u8> {
    let block = (u32::try_from(text.len()).unwrap() << 3) | 1;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    frame.extend_from_slice(&block.to_le_bytes()[..3]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[tokio::test]
async fn what_unpacking_holds_in_memory_is_bounded_with_all_bodies() {
    // One client gets a fifth: less than the largest window, more than two ordinary ones.
    let settings = [("WAYPOST_BODY_MEMORY_BYTES", "30000000")];
    let system = System::start(system().await.shape(), &settings).await;
    let org = system.organization().await;
    for (kind, text) in [
        (NDJSON, "{\"id\": \"a\", \"email\": \"a@b.c\"}\n"),
        (CSV, "id,email\nb,a@b.c\n"),
    ] {
        let refused = send(&org.admin, kind, "zstd", zstd_with_largest_window(text)).await;
        assert_eq!(refused.header("retry-after"), Some("5"));
        assert!(refused.error(503).contains("too many request bodies"));
        for coding in ["zstd", "gzip"] {
            let taken = send(&org.admin, kind, coding, pack(coding, text.as_bytes())).await;
            assert!(lines(&taken)[0]["id"].is_string(), "{}", taken.text());
        }
    }
    eventually("nothing to be held", async || {
        (told(&system, "waypost_http_body_bytes").await == 0.0).then_some(())
    })
    .await;
}
