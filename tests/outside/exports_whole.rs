//! Exports against an independent model: random records with random updates and deletes, read by
//! other programs.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::process::{Command, Stdio};

use calamine::{Data, Reader as _, Xlsx};
use harness::{Answer, Organization};
use local_servers::TemporaryHome;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use serde_json::{Value, json};

use super::documents::text_of;
use super::exports::position_of;
use super::ndjson;
use crate::system;

/// A kind of record that is exported.
struct Kind {
    name: &'static str,
    sheet: &'static str,
    /// The number of columns before `updatedAt`, which is not known here; `createdAt` is the last
    /// of them.
    width: usize,
    /// The written fields, with their columns.
    fields: &'static [(&'static str, usize, Content)],
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    Text,
    Whole,
    Percent,
    Day,
}

const COMPANIES: Kind = Kind {
    name: "companies",
    sheet: "Companies",
    width: 13,
    fields: &[
        ("name", 1, Content::Text),
        ("email", 5, Content::Text),
        ("address", 6, Content::Text),
        ("city", 7, Content::Text),
        ("employees", 9, Content::Whole),
        ("annualRevenue", 10, Content::Whole),
    ],
};

const DEALS: Kind = Kind {
    name: "deals",
    sheet: "Deals",
    width: 13,
    fields: &[
        ("title", 1, Content::Text),
        ("stage", 2, Content::Text),
        ("companyName", 7, Content::Text),
        ("owner", 10, Content::Text),
        ("amount", 3, Content::Whole),
        ("probability", 5, Content::Percent),
        ("expectedCloseDate", 11, Content::Day),
    ],
};

const CONTACTS: Kind = Kind {
    name: "contacts",
    sheet: "Contacts",
    width: 12,
    fields: &[
        ("lastName", 2, Content::Text),
        ("email", 3, Content::Text),
        ("jobTitle", 5, Content::Text),
        ("city", 8, Content::Text),
    ],
};

/// The expected row of each record, by id.
type Account = BTreeMap<String, Vec<String>>;

/// A change to the record with a number.
#[derive(Clone, Debug)]
enum Step {
    Write(u8, [String; 4], u16),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = || {
        prop_oneof![
            4 => "(\r\n|[=+@\t\n;,'\" A-Za-z0-9éß漢ש🚲＝＋－＠-]){0,20}[a-z0-9]",
            1 => "[+-]?[0-9]{1,18}([.][0-9]{1,3})?",
        ]
    };
    let texts = [text(), text(), text(), text()];
    let write = (any::<u8>(), texts, any::<u16>());
    let write = write.prop_map(|(id, texts, number)| Step::Write(id % 150, texts, number));
    let delete = any::<u8>().prop_map(|id| Step::Delete(id % 150));
    proptest::collection::vec(prop_oneof![4 => write, 1 => delete], 600)
}

fn id(number: u8) -> String {
    format!("record{number}x")
}

/// The higher the number the older, and some have the same time.
fn created_at(number: u8) -> String {
    format!("2020-01-01T00:{:02}:00Z", 59 - number / 3)
}

/// A field's value, as it is written and as it is read.
fn value(
    content: Content,
    texts: &mut impl Iterator<Item = String>,
    number: u16,
) -> (Value, String) {
    match content {
        Content::Text => {
            let text = texts.next().unwrap_or_default();
            (json!(text), text)
        }
        Content::Whole => (json!(number), number.to_string()),
        Content::Percent => {
            let percent = f64::from(number % 400) / 4.0;
            (json!(percent), percent.to_string())
        }
        Content::Day => {
            let first = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
            let day = first + chrono::Days::new(u64::from(number % 5_000));
            (json!(day.to_string()), day.to_string())
        }
    }
}

/// Performs all steps, several per request; returns the expected rows.
async fn carried_out(kind: &Kind, org: &Organization<'_>, steps: Vec<Step>) -> Account {
    let mut account = Account::new();
    let mut lines = Vec::new();
    for step in steps {
        match step {
            Step::Write(nth, texts, number) => {
                let mut line = json!({"id": id(nth), "createdAt": created_at(nth)});
                let mut row = vec![String::new(); kind.width];
                row[0] = id(nth);
                row[kind.width - 1] = created_at(nth);
                let mut texts = texts.into_iter();
                for (field, place, content) in kind.fields {
                    (line[field], row[*place]) = value(*content, &mut texts, number);
                }
                lines.push(line);
                account.insert(id(nth), row);
            }
            Step::Delete(nth) => {
                send(kind, org, &mut lines).await;
                let path = format!("/api/v1/records/{}/{}", kind.name, id(nth));
                let gone = org.admin.delete(&path).await.status;
                let stood = account.remove(&id(nth)).is_some();
                assert_eq!(gone, if stood { 204 } else { 404 });
            }
        }
    }
    send(kind, org, &mut lines).await;
    account
}

async fn send(kind: &Kind, org: &Organization<'_>, lines: &mut Vec<Value>) {
    if lines.is_empty() {
        return;
    }
    let body = ndjson(lines.drain(..));
    let path = format!("/api/v1/records/{}", kind.name);
    let answer = org
        .admin
        .post_bytes(&path, "application/x-ndjson", body)
        .await;
    assert!(!answer.text().contains("\"error\""), "{}", answer.text());
}

/// The expected rows, newest first and then by id.
fn rows(kind: &Kind, account: &Account) -> Vec<Vec<String>> {
    let mut rows: Vec<_> = account.values().cloned().collect();
    let created = kind.width - 1;
    rows.sort_by(|a, b| (&b[created], &a[0]).cmp(&(&a[created], &b[0])));
    rows
}

/// A program's output for some bytes; `None` if it is not installed.
fn read_by(program: &str, arguments: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let (mut stdin, bytes) = (child.stdin.take()?, bytes.to_vec());
    let sending = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    sending.join().unwrap().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    Some(output.stdout)
}

const PYTHON: &str = "import csv, io, json, sys; text = io.TextIOWrapper(sys.stdin.buffer, \
                      'utf-8', newline=''); print(json.dumps(list(csv.reader(text))))";

/// The rows without the header and without `updatedAt`.
fn told(kind: &Kind, mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    for row in &mut rows {
        row.truncate(kind.width);
    }
    rows.remove(0);
    rows
}

/// A text as a cell of a CSV: guarded if a spreadsheet would run it, else as it was written.
fn in_csv(text: &str) -> String {
    let is_number = serde_json::from_str::<serde_json::Number>(text).is_ok()
        && !text.starts_with(char::is_whitespace);
    let is_phone = text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_sign = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let guard = if is_sign && !is_number && !is_phone {
        "'"
    } else {
        ""
    };
    format!("{guard}{text}")
}

/// A text without its white space: an office keeps line ends in its own way.
fn unspaced(text: &str) -> String {
    text.split_whitespace().collect()
}

async fn packed(org: &Organization<'_>, path: &str, coding: &str) -> Answer {
    let request = org.admin.request(Method::GET, path);
    Answer::to(request.header("accept-encoding", coding)).await
}

/// Rows as a CSV reader parses them.
fn rows_of(csv: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).from_reader(csv);
    let rows: Result<_, _> = reader.deserialize().collect();
    rows.unwrap()
}

/// A cell of a workbook as CSV writes it.
fn in_words(cell: &Data) -> String {
    match cell {
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        }
        other => other.to_string(),
    }
}

/// A workbook converted by `LibreOffice` to CSV; `None` if it is not installed.
fn read_by_an_office(workbook: &[u8]) -> Option<Vec<u8>> {
    let folder = TemporaryHome::new().expect("a folder");
    let (file, home) = (folder.path().join("export.xlsx"), folder.path().display());
    std::fs::write(&file, workbook).unwrap();
    // Commas, quotation marks, UTF-8, all lines, and cells by their content, not by their format.
    let csv = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false";
    let mut command = Command::new("soffice");
    command
        .arg(format!("-env:UserInstallation=file://{home}/profile"))
        .args(["--headless", "--convert-to", csv, "--outdir"])
        .arg(folder.path())
        .arg(&file);
    let output = command.output().ok()?;
    let csv = std::fs::read(folder.path().join("export.csv"));
    Some(csv.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

async fn every_file_holds_what_was_written(kind: Kind) {
    let org = system().await.organization().await;
    let mut runner = TestRunner::default();
    let steps = steps().new_tree(&mut runner).unwrap().current();
    let wanted = rows(&kind, &carried_out(&kind, &org, steps).await);
    assert!(wanted.len() > 60, "{}", wanted.len());

    let path = format!("/api/export/{}", kind.name);
    let position = position_of(kind.name, &org).await;
    let csv = org.admin.get_at(&path, &position).await.body;
    let cells = |row: &Vec<String>| row.iter().map(|text| in_csv(text)).collect();
    let guarded: Vec<Vec<String>> = wanted.iter().map(cells).collect();
    assert_eq!(told(&kind, rows_of(&csv)), guarded);
    if let Some(read) = read_by("python3", &["-c", PYTHON], &csv) {
        let read = serde_json::from_slice(&read).unwrap();
        assert_eq!(told(&kind, read), guarded);
    }
    for coding in ["gzip", "zstd"] {
        let answer = packed(&org, &path, coding).await;
        assert_eq!(answer.header("content-encoding"), Some(coding));
        if let Some(read) = read_by(coding, &["-dc"], &answer.body) {
            assert!(read == csv, "{coding}");
        }
    }
    let excel = org.admin.get(&format!("{path}?format=excel")).await.body;
    a_workbook_holds(&kind, excel, wanted.clone());
    let pdf = org.admin.get(&format!("{path}?format=pdf")).await.body;
    if let Some(image) = read_by("pdftoppm", &["-gray", "-r", "100", "-l", "1", "-"], &pdf) {
        a_page_is_filled_within_its_margins(&image);
    }
    if let Some(text) = text_of(&pdf) {
        let found: Vec<&str> = text
            .split_whitespace()
            .filter(|word| word.starts_with("record"))
            .collect();
        let ids: Vec<&str> = wanted.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(found, ids);
    }
}

fn a_workbook_holds(kind: &Kind, excel: Vec<u8>, mut wanted: Vec<Vec<String>>) {
    let by_an_office = read_by_an_office(&excel);
    let mut workbook = Xlsx::new(Cursor::new(excel)).unwrap();
    let sheet = workbook.worksheet_range(kind.sheet).unwrap();
    let cells = sheet.rows().map(|row| row.iter().map(in_words).collect());
    let cells = told(kind, cells.collect());
    if let Some(csv) = by_an_office {
        let read = told(kind, rows_of(&csv));
        assert_eq!(read.len(), wanted.len());
        for (read, row) in read.iter().zip(&wanted) {
            for (field, place, content) in kind.fields {
                // Dates are formatted in the office's language.
                assert!(
                    unspaced(&read[*place]) == unspaced(&row[*place]) || *content == Content::Day,
                    "{field}: {read:?}"
                );
            }
        }
    }
    let days = kind.fields.iter().filter(|field| field.2 == Content::Day);
    for (_, place, _) in days {
        for row in &mut wanted {
            row[*place].push_str("T00:00:00Z");
        }
    }
    assert_eq!(cells, wanted);
}

/// Checks the image of a page, as PGM: width, height and the highest value, then a byte for each
/// pixel.
fn a_page_is_filled_within_its_margins(image: &[u8]) {
    let mut parts = image.splitn(4, u8::is_ascii_whitespace);
    assert_eq!(parts.next(), Some(&b"P5"[..]));
    let mut number = || {
        let digits = std::str::from_utf8(parts.next().unwrap()).unwrap();
        digits.parse::<usize>().unwrap()
    };
    let (width, height) = (number(), number());
    let points = &image[image.len() - width * height..];
    let (mut ink, edge) = (0, width / 50);
    for (nth, _) in points.iter().enumerate().filter(|(_, point)| **point < 192) {
        let (x, y) = (nth % width, nth / width);
        let inside = (edge..width - edge).contains(&x) && (edge..height - edge).contains(&y);
        assert!(inside, "ink at {x}, {y} of {width}, {height}");
        ink += 1;
    }
    let share = points.len() / ink;
    assert!((5..100).contains(&share), "one point of {share} is inked");
}

#[tokio::test]
async fn every_file_of_companies_holds_what_was_written_and_nothing_else() {
    every_file_holds_what_was_written(COMPANIES).await;
}

#[tokio::test]
async fn every_file_of_deals_holds_what_was_written_and_nothing_else() {
    every_file_holds_what_was_written(DEALS).await;
}

#[tokio::test]
async fn every_file_of_contacts_holds_what_was_written_and_nothing_else() {
    every_file_holds_what_was_written(CONTACTS).await;
}
