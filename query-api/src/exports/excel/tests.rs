use std::io::Cursor;

use calamine::{Data, DataType, Reader, Xlsx};
use chrono::{DateTime, NaiveDate, TimeZone, Utc};
use proptest::prelude::*;
use schemas::OrgId;

use super::cells::{LARGEST_NUMBER, LONGEST_TEXT};
use super::*;
use crate::exports::column::Column;
use crate::exports::files::Files;

static THINGS: Kind = Kind {
    name: "things",
    title: "Things",
    columns: &[
        Column::text("id", 10),
        Column::integer("size", 8),
        Column::date("madeOn"),
        Column::timestamp("createdAt"),
        Column::number("share", 8),
    ],
    crm: None,
    changes: None,
    projection: crate::progress::Projection::Contacts,
    statement: "",
};

type Row = (String, Option<i64>, NaiveDate, DateTime<Utc>);

fn title() -> Title {
    Title {
        organization: "Müller & <Söhne>".to_owned(),
        at: DateTime::UNIX_EPOCH,
    }
}

/// A file in memory.
type Memory = Cursor<Vec<u8>>;

fn writer(rows_per_sheet: u32) -> ExcelWriter<Memory> {
    let packed = Memory::default();
    ExcelWriter::with_rows_per_sheet(&THINGS, title(), packed, rows_per_sheet).unwrap()
}

fn finished(writer: ExcelWriter<Memory>) -> Vec<u8> {
    let mut bytes = Vec::new();
    writer.finish(Memory::default(), &mut bytes).unwrap();
    bytes
}

fn workbook(rows: &[Row], rows_per_sheet: u32) -> Xlsx<Memory> {
    let mut writer = writer(rows_per_sheet);
    for (text, number, day, moment) in rows {
        let cells = [
            Cell::Text(text),
            number.map_or(Cell::Empty, Cell::Integer),
            Cell::Date(*day),
            Cell::Timestamp(*moment),
            Cell::Number(0.25),
        ];
        writer.write_row(&cells).unwrap();
    }
    Xlsx::new(Cursor::new(finished(writer))).unwrap()
}

fn row(text: &str) -> Row {
    let moment = Utc.with_ymd_and_hms(2026, 11, 21, 14, 9, 33).unwrap();
    (text.to_owned(), Some(7), moment.date_naive(), moment)
}

/// Returns every value of one column below the header, sheet after sheet.
fn column(workbook: &mut Xlsx<Memory>, index: usize) -> Vec<Data> {
    let sheets = workbook.worksheets();
    let values = sheets.iter().flat_map(|(_, sheet)| sheet.rows().skip(1));
    values.map(|row| row[index].clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_is_read_back(
        rows in proptest::collection::vec(
            (
                "[^\u{0}-\u{1f}\u{7f}\u{fffe}\u{ffff}]{1,30}|[=+@-][A-Z0-9()+]{1,8}",
                proptest::option::of(-LARGEST_NUMBER..=LARGEST_NUMBER),
                0..80_000_i64,
                0..4_000_000_000_i64,
            ),
            1..10,
        ),
    ) {
        let first = NaiveDate::from_ymd_opt(1900, 3, 1).unwrap();
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(text, number, days, seconds)| {
                let day = first + chrono::Duration::days(days);
                (text, number, day, Utc.timestamp_opt(seconds, 0).unwrap())
            })
            .collect();
        let mut workbook = workbook(&rows, 5);
        let texts: Vec<Data> = rows.iter().map(|row| Data::String(row.0.clone())).collect();
        prop_assert_eq!(column(&mut workbook, 0), texts);
        for (read, row) in column(&mut workbook, 1).iter().zip(&rows) {
            #[expect(clippy::cast_precision_loss)]
            let number = row.1.map(|number| number as f64);
            prop_assert_eq!(read.get_float(), number);
        }
        let days: Vec<_> = column(&mut workbook, 2).iter().map(|d| day_of(d).date()).collect();
        prop_assert_eq!(days, rows.iter().map(|row| row.2).collect::<Vec<_>>());
        for (read, row) in column(&mut workbook, 3).iter().zip(&rows) {
            let off = day_of(read) - row.3.naive_utc();
            prop_assert!(off.num_milliseconds().abs() < 2, "{read:?} is not {}", row.3);
        }
        prop_assert_eq!(workbook.sheet_names().len(), rows.len().div_ceil(4));
    }
}

fn day_of(data: &Data) -> chrono::NaiveDateTime {
    match data {
        Data::DateTime(moment) => {
            let (y, mo, d, h, mi, s, ms) = moment.to_ymd_hms_milli();
            let day = NaiveDate::from_ymd_opt(y.into(), mo.into(), d.into()).unwrap();
            day.and_hms_milli_opt(h.into(), mi.into(), s.into(), ms.into())
                .unwrap()
        }
        other => panic!("{other:?} is no date"),
    }
}

#[test]
fn a_full_sheet_is_followed_by_another_with_the_same_header() {
    let rows: Vec<Row> = ["a", "b", "c"].map(row).into();
    let mut workbook = workbook(&rows, 3);
    assert_eq!(workbook.sheet_names(), ["Things", "Things 2"]);
    for (name, sheet) in workbook.worksheets() {
        let header: Vec<String> = sheet
            .rows()
            .next()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            header,
            ["id", "size", "madeOn", "createdAt", "share"],
            "{name}"
        );
    }
    let texts: Vec<String> = column(&mut workbook, 0)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(texts, ["a", "b", "c"]);
}

#[test]
fn each_part_says_at_its_head_how_long_it_is() {
    let mut writer = writer(ROWS_PER_SHEET);
    writer.write_row(&[Cell::Text("a")]).unwrap();
    let bytes = finished(writer);
    let mut parts = ZipArchive::new(Cursor::new(&bytes)).unwrap();
    let mut next = 0;
    for place in 0..parts.len() {
        let part = parts.by_index_raw(place).unwrap();
        let head = &bytes[usize::try_from(next).unwrap()..];
        assert_eq!(head[..4], *b"PK\x03\x04");
        // No lengths after the part.
        assert_eq!(head[6] & 8, 0);
        let length = u32::from_le_bytes(head[18..22].try_into().unwrap());
        assert_eq!(u64::from(length), part.compressed_size());
        next = part.data_start().unwrap() + part.compressed_size();
    }
}

#[test]
fn only_the_first_sheet_is_selected() {
    let mut writer = writer(2);
    for _ in 0..3 {
        writer.write_row(&[Cell::Text("a")]).unwrap();
    }
    let mut parts = ZipArchive::new(Cursor::new(finished(writer))).unwrap();
    let mut selected = |number| {
        let mut text = String::new();
        let mut part = parts.by_name(&part_of(number)).unwrap();
        part.read_to_string(&mut text).unwrap();
        assert!(!text.contains("<dimension"), "{text}");
        text.contains("tabSelected")
    };
    assert_eq!([1, 2, 3].map(&mut selected), [true, false, false]);
}

#[test]
fn characters_that_xml_does_not_have_are_written_as_excel_does() {
    let mut out = Vec::new();
    let text = "a\u{1}\tb\r\nc_x0041_ & <d> _x_ \u{ffff}";
    let cells = [Cell::Text(text), Cell::Text(" e ")];
    let styles = Frame::new(&THINGS, &title(), 1).unwrap().styles().unwrap();
    Cells::new(styles, 28).write_row(7, &cells, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "<row r=\"7\"><c r=\"A7\" t=\"inlineStr\"><is><t>a_x0001_\tb_x000D_\nc_x005F_x0041_ &amp; \
         &lt;d&gt; _x_ _xFFFF_</t></is></c><c r=\"B7\" t=\"inlineStr\"><is>\
         <t xml:space=\"preserve\"> e </t></is></c></row>"
    );
}

#[test]
fn numbers_with_a_fraction_are_numbers() {
    let mut workbook = workbook(&[row("a")], ROWS_PER_SHEET);
    assert_eq!(column(&mut workbook, 4), [Data::Float(0.25)]);
}

#[test]
fn text_is_never_a_formula() {
    let mut workbook = workbook(&[row("=1+1")], ROWS_PER_SHEET);
    let formulas = workbook.worksheet_formula("Things").unwrap();
    assert!(formulas.is_empty());
    assert_eq!(column(&mut workbook, 0), [Data::String("=1+1".to_owned())]);
}

#[test]
fn what_excel_cannot_hold_is_text() {
    let (text, _, _, moment) = row(&"é".repeat(40_000));
    let early = NaiveDate::from_ymd_opt(1850, 1, 1).unwrap();
    let mut workbook = workbook(&[(text, Some(i64::MAX), early, moment)], ROWS_PER_SHEET);
    let Data::String(text) = &column(&mut workbook, 0)[0] else {
        panic!("no text");
    };
    assert_eq!(text.encode_utf16().count(), LONGEST_TEXT);
    assert!(text.ends_with('…'));
    assert_eq!(
        column(&mut workbook, 1),
        [Data::String(i64::MAX.to_string())]
    );
    assert_eq!(
        column(&mut workbook, 2),
        [Data::String("1850-01-01".to_owned())]
    );
}

/// Writes rows that hardly get smaller.
fn write_many<S: Read + Write + Seek>(writer: &mut ExcelWriter<S>) -> io::Result<()> {
    for nth in 0..20_000_u32 {
        let text = format!("{:x}", nth.wrapping_mul(2_654_435_761));
        writer.write_row(&[Cell::Text(&text)])?;
    }
    Ok(())
}

/// Writes a workbook with files that may take so many bytes in all.
fn write_within(bytes: u64) -> io::Result<()> {
    // An organization gets half of the room.
    let files = Files::new(2, 2 * bytes);
    let mut spool = files.try_begin(&OrgId::from("a")).unwrap();
    let mut writer = ExcelWriter::new(&THINGS, title(), spool.scratch()?)?;
    write_many(&mut writer)?;
    let whole = spool.scratch()?;
    writer.finish(whole, &mut spool)
}

#[test]
fn the_files_that_a_workbook_is_made_with_are_limited_too() {
    let mut writer = writer(ROWS_PER_SHEET);
    write_many(&mut writer).unwrap();
    let length = finished(writer).len() as u64;
    // Less than the rows take, and less than the rows and the workbook take together.
    for too_few in [length / 2, length * 3 / 2] {
        let error = write_within(too_few).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    write_within(2 * length + 100_000).unwrap();
}
