//! Imports that are interrupted, repeated with the same file, and of repeated records.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;

use harness::{Organization, System, eventually};
use serde_json::{Value, json};

use super::import::{Files, exported, import, rejects};
use super::ndjson;
use super::uploads_packed::pack;
use crate::system;

/// Far more than is written before an import first reports its progress.
const MANY: usize = 16_000;

fn csv(rows: impl IntoIterator<Item = (String, String)>) -> String {
    let mut text = "id,email,city\r\n".to_owned();
    for (id, city) in rows {
        let _ = write!(text, "{id},a@b.c,{city}\r\n");
    }
    text
}

/// Imports a file until it reports its progress, and is killed there.
async fn interrupted(system: &System, org: &Organization<'_>, file: &str) -> Value {
    let mut running = system.begin_waypost(&["import", "--org", &org.id, "contacts", file]);
    let path = format!("{file}.import.json");
    let told = eventually("how far it has come", async || fs::read(&path).ok()).await;
    running.kill().await.unwrap();
    serde_json::from_slice(&told).unwrap()
}

#[tokio::test]
async fn an_interrupted_import_goes_on_where_it_had_come_to() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let rows = (0..MANY).map(|nth| match nth {
        // A record without anything that identifies it.
        1 => ("c1,,\r\nc1".to_owned(), "Rome".to_owned()),
        _ => (format!("c{nth}"), "\"Two\nlines\"".to_owned()),
    });
    let last = ("late,,".to_owned(), String::new());
    let file = files.write("contacts.csv", csv(rows.chain([last])));
    let file = file.to_str().unwrap();
    let before = interrupted(system, &org, file).await;
    assert_eq!(before["rejected"], 1, "{before}");
    // Processing the first row again would write it again.
    let gone = org.admin.delete("/api/v1/records/contacts/c0").await;
    assert_eq!(gone.status, 204);

    let done = import(system, &org, file, b"").await;
    assert_eq!(done["imported"], MANY);
    let rejects = rejects(&done);
    assert_eq!(
        (&rejects[0]["row"], &rejects[0]["line"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(rejects[1]["row"], MANY + 2);
    assert_eq!(rejects[1]["line"], 2 * MANY + 2);
    let here = exported(&org, &done["position"]).await;
    assert_eq!(here.len(), MANY - 1);
    assert!(here.iter().all(|row| &row[0] != "c0"));
    assert!(fs::metadata(format!("{file}.import.json")).is_err());
}

#[tokio::test]
async fn an_interrupted_import_of_a_packed_file_goes_on_where_it_had_come_to() {
    let system = system().await;
    for (coding, name, delimiter) in [
        ("gzip", "contacts.csv.gz", ","),
        ("zstd", "contacts.csv.zst", ";"),
    ] {
        let org = system.organization().await;
        let files = Files::new();
        let text = csv((0..MANY).map(|nth| (format!("c{nth}"), format!("City {nth}"))));
        let text = text.replace(',', delimiter);
        let file = files.write(name, pack(coding, text.as_bytes()));
        let file = file.to_str().unwrap();
        interrupted(system, &org, file).await;
        // Processing the first row again would write it again.
        let gone = org.admin.delete("/api/v1/records/contacts/c0").await;
        assert_eq!(gone.status, 204);
        let done = import(system, &org, file, b"").await;
        assert_eq!(done["imported"], MANY, "{coding}");
        let here = exported(&org, &done["position"]).await;
        assert_eq!(here.len(), MANY - 1, "{coding}");
        let last = format!("City {}", MANY - 1);
        assert!(here.iter().any(|row| row[8] == last), "{coding}");
        // Compressed by another program, and from a pipe.
        let again = import(system, &org, "-", &pack(coding, text.as_bytes())).await;
        assert_eq!(again["imported"], MANY, "{coding}");
    }
}

#[tokio::test]
async fn what_another_import_has_done_counts_for_nothing() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let files = Files::new();
    let rows = |city: &'static str| csv((0..MANY).map(|nth| (format!("c{nth}"), city.to_owned())));
    let path = files.write("contacts.csv", rows("Rome"));
    let file = path.to_str().unwrap();
    interrupted(system, &org, file).await;
    let done = import(system, &other, file, b"").await;
    assert_eq!(exported(&other, &done["position"]).await.len(), MANY);
    interrupted(system, &org, file).await;
    files.write("contacts.csv", rows("Oslo"));
    let done = import(system, &org, file, b"").await;
    let here = exported(&org, &done["position"]).await;
    assert_eq!(here.iter().filter(|row| &row[8] == "Oslo").count(), MANY);
}

#[tokio::test]
async fn the_same_file_again_doubles_no_row_without_an_id() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let lines = ["Ada", "Ada", "Zoë"].map(|name| json!({"firstName": name, "email": "a@b.c"}));
    let file = files.write("contacts.ndjson", ndjson(lines.clone()));
    let done = import(system, &org, file.to_str().unwrap(), b"").await;
    let first = exported(&org, &done["position"]).await;
    assert_eq!(
        first.len(),
        3,
        "rows that are the same are records of their own"
    );
    let again = import(system, &org, file.to_str().unwrap(), b"").await;
    assert_eq!(again["imported"], 3);
    assert_eq!(exported(&org, &again["position"]).await, first);
    let more = lines.into_iter().chain([json!({"email": "new@b.c"})]);
    let other = files.write("others.ndjson", ndjson(more));
    let done = import(system, &org, other.to_str().unwrap(), b"").await;
    assert_eq!(
        exported(&org, &done["position"]).await.len(),
        7,
        "another file"
    );
}

/// Lines of which some records have several, far apart, and each one's last written city.
fn changing() -> (Vec<Value>, HashMap<String, String>) {
    let (mut lines, mut last) = (Vec::new(), HashMap::new());
    for nth in 0..8_000_usize {
        let id = if nth.is_multiple_of(3) {
            nth % 700
        } else {
            nth
        };
        let (id, city) = (format!("c{id}"), format!("City {nth}"));
        lines.push(json!({"id": id, "email": "a@b.c", "city": city}));
        last.insert(id, city);
    }
    (lines, last)
}

#[tokio::test]
async fn of_a_record_that_is_imported_several_times_the_last_version_is_kept() {
    let system = system().await;
    let (lines, last) = changing();
    let (by_command, over_http) = (system.organization().await, system.organization().await);
    let files = Files::new();
    let file = files.write("contacts.ndjson", ndjson(lines.clone()));
    let done = import(system, &by_command, file.to_str().unwrap(), b"").await;
    assert_eq!(done["imported"], 8_000);
    let position = super::exports::write(&over_http, &lines).await;
    for (org, position) in [
        (by_command, &done["position"]),
        (over_http, &json!(position)),
    ] {
        let here = exported(&org, position).await;
        assert_eq!(here.len(), last.len());
        for row in &here {
            assert_eq!(&row[8], last[&row[0]], "{row:?}");
        }
    }
}

#[tokio::test]
async fn new_and_known_records_are_distinguished_however_they_are_mixed() {
    let org = system().await.organization().await;
    let line =
        |nth: usize, city: &str| json!({"id": format!("c{nth}"), "email": "a@b.c", "city": city});
    let is_known = |nth: &usize| (3_000..4_000).contains(nth) || nth % 5 == 4;
    let known = (0..6_000).filter(is_known);
    let known: Vec<Value> = known.map(|nth| line(nth, "Rome")).collect();
    super::exports::write(&org, &known).await;
    let city = |nth: usize| {
        if nth.is_multiple_of(2) {
            "Rome"
        } else {
            "Oslo"
        }
    };
    let lines = ndjson((0..6_000).map(|nth| line(nth, city(nth))));
    let answer = org
        .admin
        .post_bytes("/api/v1/records/contacts", "application/x-ndjson", lines)
        .await;
    let text = answer.text();
    assert_eq!(text.lines().count(), 6_000);
    for (nth, told) in text.lines().enumerate() {
        let told: Value = serde_json::from_str(told).unwrap();
        let status = match (is_known(&nth), city(nth)) {
            (false, _) => "created",
            (true, "Rome") => "unchanged",
            (true, _) => "updated",
        };
        assert_eq!(told["line"], nth + 1);
        assert_eq!(
            (&told["id"], &told["status"]),
            (&json!(format!("c{nth}")), &json!(status))
        );
    }
}

#[tokio::test]
async fn a_packed_file_that_breaks_off_is_an_error_and_goes_on_once_it_is_whole() {
    let system = system().await;
    for (coding, name) in [
        ("gzip", "contacts.csv.gz"),
        ("zstd", "contacts.csv.zst"),
        ("gzip", "contacts.ndjson.gz"),
    ] {
        let org = system.organization().await;
        let files = Files::new();
        // Rows without an id get one by their file.
        let text = if name.contains("csv") {
            let mut text = "email,city\r\n".to_owned();
            for nth in 0..MANY {
                let _ = write!(text, "a@b.c,City {nth}\r\n");
            }
            text
        } else {
            ndjson((0..MANY).map(|nth| json!({"email": "a@b.c", "city": format!("City {nth}")})))
        };
        let packed = pack(coding, text.as_bytes());
        let file = files.write(name, &packed[..packed.len() * 9 / 10]);
        let file = file.to_str().unwrap();
        let refused = async |options: &[&str]| {
            let arguments = [&["import", "--org", &org.id], options, &["contacts", file]].concat();
            let output = system.waypost_output(&arguments, b"").await;
            assert!(
                !output.status.success() && output.stdout.is_empty(),
                "{name}"
            );
            String::from_utf8(output.stderr).unwrap()
        };
        let said = refused(&["--dry-run"]).await;
        assert!(
            said.contains(name) && said.contains("cannot be read"),
            "{said}"
        );
        let none = org.admin.get("/api/export/contacts").await;
        assert_eq!(none.text().lines().count(), 1, "nothing was imported");

        // Trying again before it is whole changes nothing.
        for _ in 0..2 {
            let said = refused(&[]).await;
            let left = fs::read(format!("{file}.import.json")).expect("a checkpoint");
            let left: Value = serde_json::from_slice(&left).unwrap();
            let imported = left["imported"].as_u64().unwrap();
            let row = format!("{name}: row {} ", imported + 1);
            assert!(imported > 0 && said.contains(&row), "{said}");
            let here = exported(&org, &left["position"]).await;
            assert_eq!(here.len() as u64, imported, "{name}");
        }

        files.write(name, &packed);
        let done = import(system, &org, file, b"").await;
        assert_eq!(done["imported"], MANY, "{name}");
        assert_eq!(done["rejected"], 0, "{name}");
        let here = exported(&org, &done["position"]).await;
        assert_eq!(here.len(), MANY, "{name}");
        assert!(fs::metadata(format!("{file}.import.json")).is_err());
    }
}
