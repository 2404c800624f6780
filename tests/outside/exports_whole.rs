//! Exports against an independent account of what was written: random records with random updates
//! and deletes, read by other programs' eyes.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::process::{Command, Stdio};

use calamine::{Reader as _, Xlsx};
use harness::{Answer, Organization};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use serde_json::{Value, json};

use super::exports::position_of;
use super::ndjson;
use crate::system;

const EXPORT: &str = "/api/export/contacts";
/// The fields that are written, and their places in a row.
const FIELDS: [(&str, usize); 4] = [("lastName", 2), ("email", 3), ("jobTitle", 5), ("city", 8)];

/// What stands: the row of each record, by its id.
type Account = BTreeMap<String, Vec<String>>;

/// What is done to a record of a number.
#[derive(Clone, Debug)]
enum Step {
    Write(u8, [String; 4]),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Texts that spreadsheets take for formulas are changed on purpose; others are tested for that.
    let text = || "[A-Za-zéß漢ש🚲][A-Za-z0-9é漢ש🚲 ,\"\n]{0,20}[a-z]";
    let texts = [text(), text(), text(), text()];
    let write = (any::<u8>(), texts).prop_map(|(id, texts)| Step::Write(id % 150, texts));
    let delete = any::<u8>().prop_map(|id| Step::Delete(id % 150));
    proptest::collection::vec(prop_oneof![4 => write, 1 => delete], 600)
}

fn id(number: u8) -> String {
    format!("record{number}x")
}

/// The older the higher its number, and some of one moment.
fn created_at(number: u8) -> String {
    format!("2020-01-01T00:{:02}:00Z", 59 - number / 3)
}

/// Does all steps, several in a request; gives the account of them.
async fn carried_out(org: &Organization<'_>, steps: Vec<Step>) -> Account {
    let mut account = Account::new();
    let mut lines = Vec::new();
    for step in steps {
        match step {
            Step::Write(number, texts) => {
                let mut line = json!({"id": id(number), "createdAt": created_at(number)});
                let mut row = vec![String::new(); 12];
                row[0] = id(number);
                row[11] = created_at(number);
                for ((field, place), text) in FIELDS.into_iter().zip(texts) {
                    line[field] = json!(text);
                    row[place] = text;
                }
                lines.push(line);
                account.insert(id(number), row);
            }
            Step::Delete(number) => {
                send(org, &mut lines).await;
                let path = format!("/api/v1/records/contacts/{}", id(number));
                let gone = org.admin.delete(&path).await.status;
                let stood = account.remove(&id(number)).is_some();
                assert_eq!(gone, if stood { 204 } else { 404 });
            }
        }
    }
    send(org, &mut lines).await;
    account
}

async fn send(org: &Organization<'_>, lines: &mut Vec<Value>) {
    if lines.is_empty() {
        return;
    }
    let body = ndjson(lines.drain(..));
    let path = "/api/v1/records/contacts";
    let answer = org
        .admin
        .post_bytes(path, "application/x-ndjson", body)
        .await;
    assert!(!answer.text().contains("\"error\""), "{}", answer.text());
}

/// The rows of an account, newest first and then by id.
fn rows(account: &Account) -> Vec<Vec<String>> {
    let mut rows: Vec<_> = account.values().cloned().collect();
    rows.sort_by(|a, b| (&b[11], &a[0]).cmp(&(&a[11], &b[0])));
    rows
}

/// What a program makes of some bytes; `None` where it is not installed.
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

/// The rows without `updatedAt`, which the account does not know.
fn without_update(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    for row in &mut rows {
        row.truncate(12);
    }
    rows.remove(0);
    rows
}

async fn packed(org: &Organization<'_>, coding: &str) -> Answer {
    let request = org.admin.request(Method::GET, EXPORT);
    Answer::to(request.header("accept-encoding", coding)).await
}

#[tokio::test]
async fn every_file_holds_what_was_written_and_nothing_else() {
    let org = system().await.organization().await;
    let mut runner = TestRunner::default();
    let steps = steps().new_tree(&mut runner).unwrap().current();
    let wanted = rows(&carried_out(&org, steps).await);
    assert!(wanted.len() > 60, "{}", wanted.len());

    let position = position_of("contacts", &org).await;
    let csv = org.admin.get_at(EXPORT, &position).await.body;
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).from_reader(csv.as_slice());
    let read: Result<Vec<Vec<String>>, _> = reader.deserialize().collect();
    assert_eq!(without_update(read.unwrap()), wanted);
    if let Some(read) = read_by("python3", &["-c", PYTHON], &csv) {
        assert_eq!(
            without_update(serde_json::from_slice(&read).unwrap()),
            wanted
        );
    }
    for coding in ["gzip", "zstd"] {
        let answer = packed(&org, coding).await;
        assert_eq!(answer.header("content-encoding"), Some(coding));
        if let Some(read) = read_by(coding, &["-dc"], &answer.body) {
            assert!(read == csv, "{coding}");
        }
    }

    let excel = org.admin.get(&format!("{EXPORT}?format=excel")).await.body;
    let mut workbook = Xlsx::new(Cursor::new(excel)).unwrap();
    let sheet = workbook.worksheet_range("Contacts").unwrap();
    let cells: Vec<Vec<String>> = sheet
        .rows()
        .skip(1)
        .map(|row| row.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(cells.len(), wanted.len());
    for (cells, row) in cells.iter().zip(&wanted) {
        for place in [0, 2, 3, 5, 8] {
            assert_eq!(cells[place], row[place]);
        }
    }

    let pdf = org.admin.get(&format!("{EXPORT}?format=pdf")).await.body;
    if let Some(text) = read_by("pdftotext", &["-layout", "-", "-"], &pdf) {
        let text = String::from_utf8(text).unwrap();
        let found: Vec<&str> = text
            .split_whitespace()
            .filter(|word| word.starts_with("record"))
            .collect();
        let ids: Vec<&str> = wanted.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(found, ids);
    }
}
