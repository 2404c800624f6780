//! Rows of an export per second, over Postgres's own.

use std::io::Write as _;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use reqwest::StatusCode;
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::report::Report;
use crate::system::System;

const ROWS: u32 = 200_000;
const COPY: &str = "COPY (SELECT id, first_name, last_name, email, phone, job_title, company_id,
    company_name, city, country, owner, created_at, updated_at FROM contacts
    ORDER BY created_at DESC, id) TO STDOUT (FORMAT csv)";

/// Imports contacts and exports them again.
pub(crate) async fn measure(system: &System, rounds: usize, report: &mut Report) {
    let (org, key) = system.organization().await;
    let (imported, took) = import_contacts(system, &org, ROWS as usize).await;
    let seconds = took.as_secs_f64();
    let position = imported["position"]
        .as_str()
        .expect("a position")
        .to_owned();
    report.rate(
        "contacts imported",
        &[(f64::from(ROWS) / seconds, f64::from(ROWS) / seconds)],
        "",
    );

    until_readable(system, "contacts", &key, &position).await;
    export(system, &key, &position).await;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let copy = copy(system.servers.database_url(), ROWS as usize).await;
        pairs.push((export(system, &key, &position).await, copy));
    }
    report.rate("rows exported as CSV, over COPY TO STDOUT", &pairs, "");
}

/// Imports contacts with the operator's command line; returns its output, and the time it took.
pub(crate) async fn import_contacts(
    system: &System,
    org: &str,
    count: usize,
) -> (serde_json::Value, Duration) {
    let file = std::env::temp_dir().join(format!("waypost-bench-{}.csv", std::process::id()));
    write_contacts(&file, count);
    let started = Instant::now();
    let name = file.display().to_string();
    let imported = system
        .waypost(&["import", "--org", org, "contacts", &name])
        .await;
    let took = started.elapsed();
    std::fs::remove_file(&file).expect("the file goes");
    assert_eq!(imported["imported"], count);
    (imported, took)
}

/// Waits until reads see a position: then an unknown id is answered 404.
pub(crate) async fn until_readable(system: &System, kind: &str, key: &str, position: &str) {
    let url = format!("http://{}/api/v1/records/{kind}/none", system.addr());
    let client = reqwest::Client::new();
    loop {
        let request = client.get(&url).bearer_auth(key);
        let answer = request.header("waypost-min-position", position).send();
        match answer.await.expect("an answer").status() {
            StatusCode::NOT_FOUND => return,
            StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(Duration::from_millis(5)).await,
            other => panic!("{url}: {other}"),
        }
    }
}

fn write_contacts(path: &std::path::Path, count: usize) {
    let file = std::fs::File::create(path).expect("a file");
    let mut file = std::io::BufWriter::new(file);
    writeln!(
        file,
        "id,firstName,lastName,email,phone,jobTitle,companyName,city,country"
    )
    .expect("a line");
    for n in 0..count {
        let row =
            format!("c{n},Ada,Number {n},ada{n}@example.com,+4930{n:07},Engineer,Acme,Berlin,DE");
        writeln!(file, "{row}").expect("a line");
    }
}

/// Rows per second that Postgres copies out, given the number of `rows`.
pub(crate) async fn copy(database_url: &str, rows: usize) -> f64 {
    let mut connection = PgConnection::connect(database_url).await.expect("Postgres");
    let started = Instant::now();
    let mut out = connection.copy_out_raw(COPY).await.expect("a copy");
    while let Some(bytes) = out.try_next().await.expect("rows") {
        std::hint::black_box(bytes);
    }
    let rows = u32::try_from(rows).expect("not that many");
    f64::from(rows) / started.elapsed().as_secs_f64()
}

async fn export(system: &System, key: &str, position: &str) -> f64 {
    let started = Instant::now();
    let mut stream = TcpStream::connect(system.addr())
        .await
        .expect("a connection");
    let request = format!(
        "GET /api/export/contacts HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\
         authorization: Bearer {key}\r\nwaypost-min-position: {position}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sending");
    let mut buffer = vec![0; 256 * 1024];
    let (mut rows, mut last) = (0_usize, 1);
    while last > 0 {
        last = stream.read(&mut buffer).await.expect("an answer");
        // Each row has one e-mail address.
        rows += buffer[..last].split(|byte| *byte == b'@').count() - 1;
    }
    assert_eq!(rows, ROWS as usize, "the export is whole");
    f64::from(ROWS) / started.elapsed().as_secs_f64()
}
