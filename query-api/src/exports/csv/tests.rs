use chrono::TimeZone;
use proptest::prelude::*;

use super::*;

/// A row of owned texts, unlike one of [`Cell`]s.
type Texts = Vec<Option<String>>;

fn cells(texts: &Texts) -> Vec<Cell<'_>> {
    texts
        .iter()
        .map(|text| text.as_deref().map_or(Cell::Empty, Cell::Text))
        .collect()
}

fn parsed(written: &[u8]) -> Vec<Vec<String>> {
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(::csv::Terminator::CRLF)
        .from_reader(written);
    let rows = reader.records().map(|row| row.unwrap());
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

fn written(cell: Cell<'_>) -> String {
    let mut out = Vec::new();
    write_row(&[cell], &mut out);
    let text = String::from_utf8(out).unwrap();
    text.strip_suffix("\r\n").unwrap().to_owned()
}

/// Text with frequent special characters of CSV and spreadsheets.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[=+@\t\r\n\",;'| a1＝-]{0,8}",
        "[+-]?[0-9]{1,18}([.][0-9]{0,3})?([eE][+-]?[0-9]{0,2})?",
        "\\PC{0,20}",
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_but_for_the_guard(
        rows in proptest::collection::vec(
            proptest::collection::vec(proptest::option::of(text()), 2..6), 0..8),
    ) {
        let mut out = Vec::new();
        for row in &rows {
            write_row(&cells(row), &mut out);
        }
        let expected: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|text| guarded(text.as_deref().unwrap_or(""))).collect())
            .collect();
        prop_assert_eq!(parsed(&out), expected);
    }

    #[test]
    fn no_cell_begins_like_a_formula(text in text()) {
        let first = parsed(format!("{},\r\n", written(Cell::Text(&text))).as_bytes());
        let cell = &first[0][0];
        let begins_like_one = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
        let number = cell.parse::<f64>().is_ok();
        prop_assert!(!begins_like_one || number, "{cell:?}");
    }

    #[test]
    fn moments_are_written_as_json_writes_them(microseconds in -9_000_000_000_000_000..300_000_000_000_000_000_i64) {
        let moment = chrono::Utc.timestamp_micros(microseconds).unwrap();
        let json = serde_json::to_string(&moment).unwrap();
        prop_assert_eq!(format!("\"{}\"", written(Cell::Timestamp(moment))), json);
    }
}

fn guarded(text: &str) -> String {
    let guard = if is_run_by_spreadsheets(text) {
        "'"
    } else {
        ""
    };
    format!("{guard}{text}")
}

#[test]
fn formulas_are_guarded() {
    for text in [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "=",
        "+",
        "-",
        "@",
        "-x",
        "--1",
        "+1-555-0100",
        "+49 151 23456789",
        "+0123456789",
        "+1",
        "+1234567890123456",
        "-1,5",
        "-1.",
        "-.5",
        "-1e",
        "-01",
        "-0x10",
        "+1.5",
        "- 1",
        "-1 ",
        "-１",
        "=cmd|' /C calc'!A0",
    ] {
        assert!(is_run_by_spreadsheets(text), "{text:?}");
    }
}

#[test]
fn numbers_phone_numbers_and_plain_text_are_left_alone() {
    for text in [
        "-1",
        "-0",
        "-12.50",
        "-1e5",
        "-1.5E-3",
        "+4915123456789",
        "+12",
        "+123456789012345",
        "",
        "1",
        "a=b",
        " =1",
        "'=1",
        "Anna",
        "a-b",
        "#1",
        "＝1+1",
        "＋1",
        "－1",
        "＠SUM(A1)",
    ] {
        assert!(!is_run_by_spreadsheets(text), "{text:?}");
    }
}

#[test]
fn the_inside_of_a_cell_is_left_as_written() {
    for text in [
        "foo;=1+1;",
        "foo;＝1+1",
        "foo\t@SUM(A1)",
        "a;-1;+2",
        "a;;=1",
        "a;b",
        "48.1; -11.5",
    ] {
        assert_eq!(written(Cell::Text(text)), text);
    }
    assert_eq!(written(Cell::Text("=1;=2")), "'=1;=2");
    assert_eq!(written(Cell::Text("foo\n=1;")), "\"foo\n=1;\"");
    assert_eq!(written(Cell::Text("foo;\"=1;")), "\"foo;\"\"=1;\"");
}

#[test]
fn guard_and_quotes_go_together() {
    assert_eq!(written(Cell::Text("=A1,\"x\"")), "\"'=A1,\"\"x\"\"\"");
    assert_eq!(written(Cell::Text("\r\n")), "\"'\r\n\"");
    assert_eq!(written(Cell::Text("=1")), "'=1");
    assert_eq!(written(Cell::Text("a \"b\"")), "\"a \"\"b\"\"\"");
}

#[test]
fn rows_look_as_rfc_4180_has_them() {
    let mut out = Vec::new();
    write_header(
        &[
            Column::text("id", 1),
            Column::integer("size", 1),
            Column::date("day"),
        ],
        &mut out,
    );
    let day = chrono::NaiveDate::from_ymd_opt(2026, 2, 3).unwrap();
    write_row(
        &[Cell::Text("a,b"), Cell::Integer(-5), Cell::Date(day)],
        &mut out,
    );
    write_row(&[Cell::Empty, Cell::Empty, Cell::Empty], &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "id,size,day\r\n\"a,b\",-5,2026-02-03\r\n,,\r\n"
    );
}
