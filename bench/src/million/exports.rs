//! Exports: CSV over COPY TO STDOUT, Excel over its library alone, a PDF's time and memory, and
//! unchanged files.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use rust_xlsxwriter::{Format, Workbook};

use super::{files, rate};
use crate::export::copy;
use crate::large::peak;
use crate::report::{Report, median};
use crate::system::{System, until_ready};

/// The compression level of Waypost.
const PACKING: u8 = 2;
/// Requests for unchanged files.
const UNCHANGED: usize = 50;

/// Exports the contacts of the organization of the key.
pub(super) async fn measure(
    system: &System,
    key: &str,
    rows: usize,
    rounds: usize,
    report: &mut Report,
) {
    let contacts = Contacts::at(system.addr(), key);
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let copied = copy(system.servers.database_url(), rows).await;
        pairs.push((rate(rows, contacts.timed("csv").await), copied));
    }
    report.rate("rows exported as CSV, over COPY TO STDOUT", &pairs, "0.9");

    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let alone = tokio::task::spawn_blocking(move || library_alone(rows));
        let alone = rate(rows, alone.await.expect("a workbook"));
        pairs.push((rate(rows, contacts.timed("excel").await), alone));
    }
    report.rate(
        "rows exported as Excel, over the library alone",
        &pairs,
        "0.8",
    );

    let took = contacts.timed("pdf").await;
    report.time("a PDF of all rows", took, "20 s for a million");
    let queries = system.run("query-api");
    until_ready(queries.addr).await;
    let before = peak(queries.pid());
    Contacts::at(queries.addr, key).timed("pdf").await;
    report.memory("query-api before it writes a PDF", before);
    report.memory(
        "query-api at most while it writes a PDF",
        peak(queries.pid()),
    );

    for format in ["csv", "excel", "pdf"] {
        let time = contacts.unchanged(format).await;
        let what = format!("{format} that did not change, p50");
        report.time(&what, time, "5 ms");
    }
}

/// Exports of contacts of the organization of a key, over kept connections.
struct Contacts<'a> {
    client: Client,
    url: String,
    key: &'a str,
}

impl<'a> Contacts<'a> {
    fn at(addr: SocketAddr, key: &'a str) -> Self {
        Self {
            client: Client::new(),
            url: format!("http://{addr}/api/export/contacts"),
            key,
        }
    }

    fn request(&self, method: Method, format: &str) -> RequestBuilder {
        let url = format!("{}?format={format}", self.url);
        self.client.request(method, url).bearer_auth(self.key)
    }

    /// The time until a whole file has arrived.
    async fn timed(&self, format: &str) -> Duration {
        let started = Instant::now();
        let answer = self.request(Method::GET, format).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.next().await {
            std::hint::black_box(piece.expect("all of it"));
        }
        started.elapsed()
    }

    /// The time of a response that a file did not change.
    async fn unchanged(&self, format: &str) -> Duration {
        let head = self.request(Method::HEAD, format).send().await;
        let head = head.expect("an answer");
        let tag = &head.headers()["etag"];
        let mut times = Vec::with_capacity(UNCHANGED);
        for _ in 0..UNCHANGED {
            let started = Instant::now();
            let request = self.request(Method::GET, format);
            let answer = request.header("if-none-match", tag).send().await;
            times.push(started.elapsed().as_secs_f64());
            assert_eq!(
                answer.expect("an answer").status(),
                StatusCode::NOT_MODIFIED
            );
        }
        Duration::from_secs_f64(median(times.into_iter()))
    }
}

/// Writes as many rows of the same columns with the library alone, in constant memory.
fn library_alone(rows: usize) -> Duration {
    let records: Vec<_> = (0..1_000).map(|n| files::record("contacts", n)).collect();
    let fields = [
        "id",
        "firstName",
        "lastName",
        "email",
        "phone",
        "jobTitle",
        "companyId",
        "companyName",
        "city",
        "country",
        "owner",
    ];
    let moment = chrono::Utc::now().naive_utc();
    let started = Instant::now();
    let mut workbook = Workbook::new();
    workbook.set_zip_compression_level(PACKING);
    let format = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss");
    let sheet = workbook.add_worksheet_with_constant_memory();
    let sheet = sheet.expect("a sheet");
    for row in 0..u32::try_from(rows).expect("a sheet's rows").min(1_048_575) {
        let record = &records[row as usize % records.len()];
        for (column, field) in (0..).zip(fields) {
            if let Some(text) = record[field].as_str() {
                sheet.write_string(row, column, text).expect("a cell");
            }
        }
        for column in [11, 12] {
            let written = sheet.write_datetime_with_format(row, column, moment, &format);
            written.expect("a cell");
        }
    }
    workbook
        .save_to_writer(std::io::sink())
        .expect("a workbook");
    started.elapsed()
}
