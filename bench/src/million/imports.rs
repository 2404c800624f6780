//! Imports: until acknowledged over a bare client's batches, over HTTP and by command line, and
//! until visible over COPY.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::{BESIDE, KINDS, RECORDS_BESIDE, files, rate};
use crate::ceiling;
use crate::export::until_readable;
use crate::report::Report;
use crate::system::System;

/// How long a bare client publishes.
const BARE: Duration = Duration::from_secs(5);
/// Approximate total size of a contact's event, headers included.
const EVENT_BYTES: usize = 700;
/// A file's ending and its media type.
const FORMS: [(&str, &str); 2] = [("csv", "text/csv"), ("ndjson", "application/x-ndjson")];

/// The rate at which imports are acknowledged.
pub(super) async fn acknowledged(system: &System, rows: usize, report: &mut Report) {
    let bare = ceiling::batches(system, EVENT_BYTES, BARE).await;
    for (ending, media) in FORMS {
        let path = file(system, ending, rows);
        let (org, _) = system.organization().await;
        let by_command = rate(rows, import(system, &org, "contacts", &path).await.1);
        let what = format!("rows of {ending} imported to acknowledged, over bare batches");
        report.rate(&what, &[(by_command, bare)], "0.5");
        let again = rate(rows, import(system, &org, "contacts", &path).await.1);
        let what = format!("the same file of {ending} again, over the first time");
        report.rate(&what, &[(again, by_command)], "");
        let (_, key) = system.organization().await;
        let over_http = rate(rows, upload(system, &key, "contacts", media, &path).await);
        let what = format!("the same {ending} over HTTP, over the command line");
        report.rate(&what, &[(over_http, by_command)], "0.8");
        std::fs::remove_file(path).expect("the file goes");
    }
    let after = ceiling::batches(system, EVENT_BYTES, BARE).await;
    report.rate(
        "bare batches after these, over before",
        &[(after, bare)],
        "",
    );
}

/// Imports the records of the small organizations.
pub(super) async fn small_organizations(system: &System) {
    for _ in 0..BESIDE {
        let (_, key) = system.organization().await;
        for kind in KINDS {
            let path = system.home().join(format!("{kind}.ndjson"));
            files::write(&path, kind, RECORDS_BESIDE);
            upload(system, &key, kind, FORMS[1].1, &path).await;
        }
    }
}

/// Imports each kind and waits until it can be read.
pub(super) async fn visible(
    system: &System,
    (org, key): (&str, &str),
    rows: usize,
    report: &mut Report,
) {
    for kind in KINDS {
        let path = system.home().join(format!("{kind}.ndjson"));
        files::write(&path, kind, rows);
        let started = Instant::now();
        let (done, _) = import(system, org, kind, &path).await;
        let position = done["position"].as_str().expect("a position");
        until_readable(system, kind, key, position).await;
        let took = rate(rows, started.elapsed());
        let copied = copied(system, kind).await;
        let what = format!("{kind} imported to visible, over COPY of their rows");
        report.rate(&what, &[(took, copied)], "0.3");
        std::fs::remove_file(path).expect("the file goes");
    }
}

fn file(system: &System, ending: &str, rows: usize) -> PathBuf {
    let path = system.home().join(format!("contacts.{ending}"));
    match ending {
        "csv" => files::write_csv(&path, "contacts", rows),
        _ => files::write(&path, "contacts", rows),
    }
    path
}

/// Imports a file by command line; returns its output, and how long it took.
async fn import(
    system: &System,
    org: &str,
    kind: &str,
    path: &Path,
) -> (serde_json::Value, Duration) {
    let started = Instant::now();
    let path = path.display().to_string();
    let done = system.waypost(&["import", "--org", org, kind, &path]).await;
    assert_eq!(done["rejected"], 0, "{done}");
    (done, started.elapsed())
}

/// Sends a file over HTTP and reads the result of each row; returns how long it took.
async fn upload(system: &System, key: &str, kind: &str, media: &str, path: &Path) -> Duration {
    let url = format!("http://{}/api/v1/records/{kind}", system.addr());
    let file = tokio::fs::File::open(path).await.expect("the file");
    let pieces = tokio_util::io::ReaderStream::with_capacity(file, 64 * 1024);
    let started = Instant::now();
    let answer = reqwest::Client::new()
        .post(url)
        .bearer_auth(key)
        .header("content-type", media)
        .body(reqwest::Body::wrap_stream(pieces))
        .send()
        .await
        .expect("an answer");
    assert!(answer.status().is_success(), "{answer:?}");
    let text = answer.bytes().await.expect("all answers");
    let took = started.elapsed();
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    for line in lines {
        assert!(
            line.ends_with(b"\"created\"}"),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    took
}

/// Copies a kind's rows into an equal table, with all indexes; returns the rows per second.
async fn copied(system: &System, kind: &str) -> f64 {
    let mut database = PgConnection::connect(system.servers.database_url())
        .await
        .expect("Postgres");
    let mut run = async |sql: String| {
        let done = database.execute(AssertSqlSafe(sql)).await;
        done.expect("done");
    };
    run(format!("CREATE TABLE ceiling (LIKE {kind} INCLUDING ALL)")).await;
    let mut bytes = Vec::new();
    let out = format!("COPY {kind} TO STDOUT (FORMAT binary)");
    let mut out = database.copy_out_raw(&out).await.expect("a copy");
    while let Some(part) = out.try_next().await.expect("rows") {
        bytes.extend_from_slice(&part);
    }
    drop(out);
    let started = Instant::now();
    let into = "COPY ceiling FROM STDIN (FORMAT binary)";
    let mut into = database.copy_in_raw(into).await.expect("a copy");
    for part in bytes.chunks(64 * 1024) {
        into.send(part).await.expect("sending");
    }
    let rows = into.finish().await.expect("rows");
    let took = started.elapsed();
    database.execute("DROP TABLE ceiling").await.expect("done");
    rate(usize::try_from(rows).expect("not that many"), took)
}
