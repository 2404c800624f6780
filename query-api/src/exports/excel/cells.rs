//! The rows of a sheet as XML.

use std::io::Write as _;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, SecondsFormat, Timelike, Utc};

use super::frame::Styles;
use crate::exports::column::Cell;

/// Maximum length of a cell's text in UTF-16 units. Longer text is visibly shortened.
pub(super) const LONGEST_TEXT: usize = 32_767;
/// Excel loses the last digits of larger numbers, so they are written as text.
pub(super) const LARGEST_NUMBER: i64 = 999_999_999_999_999;
/// Digits of the fraction of a day: more than a millisecond needs, and what fits into 64 bits.
const DIGITS: usize = 11;
const MILLISECONDS_PER_DAY: u64 = 86_400_000;

/// Writes rows.
pub(super) struct Cells {
    styles: Styles,
    /// The columns' letters.
    columns: Vec<String>,
}

impl Cells {
    pub(super) fn new(styles: Styles, columns: usize) -> Self {
        Self {
            styles,
            columns: (0..columns).map(letters).collect(),
        }
    }

    /// Writes the row of a number, from 1.
    pub(super) fn write_row(&self, row: u32, cells: &[Cell<'_>], out: &mut Vec<u8>) {
        put(out, format_args!("<row r=\"{row}\">"));
        let digits = row.to_string();
        for (cell, column) in cells.iter().zip(&self.columns) {
            let at = CellAt {
                column,
                row: &digits,
            };
            self.write_cell(at, *cell, out);
        }
        out.extend_from_slice(b"</row>");
    }

    fn write_cell(&self, at: CellAt<'_>, cell: Cell<'_>, out: &mut Vec<u8>) {
        match cell {
            Cell::Empty | Cell::Text("") => {}
            Cell::Text(text) => at.text(text, out),
            Cell::Integer(number) if number.abs() <= LARGEST_NUMBER => {
                at.number(self.styles.integer, format_args!("{number}"), out);
            }
            Cell::Integer(number) => at.text(&number.to_string(), out),
            Cell::Number(number) if number.is_finite() => {
                at.number(0, format_args!("{number}"), out);
            }
            Cell::Number(number) => at.text(&number.to_string(), out),
            Cell::Date(day) => match days(day) {
                Some(days) => at.number(self.styles.date, format_args!("{days}"), out),
                None => at.text(&day.to_string(), out),
            },
            Cell::Timestamp(moment) => self.write_moment(at, moment, out),
        }
    }

    fn write_moment(&self, at: CellAt<'_>, moment: DateTime<Utc>, out: &mut Vec<u8>) {
        let local = moment.naive_utc();
        match days(local.date()) {
            Some(days) => {
                let part = part_of_day(local);
                let style = self.styles.timestamp;
                at.number(style, format_args!("{days}.{part:0DIGITS$}"), out);
            }
            None => at.text(&moment.to_rfc3339_opts(SecondsFormat::AutoSi, true), out),
        }
    }
}

/// The position of a cell.
#[derive(Clone, Copy)]
struct CellAt<'a> {
    column: &'a str,
    row: &'a str,
}

impl CellAt<'_> {
    fn text(self, text: &str, out: &mut Vec<u8>) {
        self.begin(out);
        let (text, rest) = fitting(text);
        let is_blank = |end: Option<char>| matches!(end, Some('\t' | '\n' | ' '));
        // Leading and trailing blanks would be dropped.
        let ends = [text.chars().next(), text.chars().next_back()];
        out.extend_from_slice(if ends.into_iter().any(is_blank) {
            b"\" t=\"inlineStr\"><is><t xml:space=\"preserve\">"
        } else {
            b"\" t=\"inlineStr\"><is><t>"
        });
        escape(text, out);
        out.extend_from_slice(rest.as_bytes());
        out.extend_from_slice(b"</t></is></c>");
    }

    fn number(self, style: u32, number: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        if style > 0 {
            put(out, format_args!("\" s=\"{style}"));
        }
        out.extend_from_slice(b"\"><v>");
        put(out, number);
        out.extend_from_slice(b"</v></c>");
    }

    fn begin(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<c r=\"");
        out.extend_from_slice(self.column.as_bytes());
        out.extend_from_slice(self.row.as_bytes());
    }
}

/// Returns the letters of a column, from 0.
fn letters(column: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(column % 26).unwrap_or_default());
    match column / 26 {
        0 => letter.to_string(),
        further => format!("{}{letter}", letters(further - 1)),
    }
}

/// Returns the number of a day, or `None` if Excel does not support it. Excel counts from 1900,
/// which it treats as a leap year, and does not support years of five digits.
fn days(day: NaiveDate) -> Option<i64> {
    let before_first = NaiveDate::from_ymd_opt(1899, 12, 31)?;
    let days = day.signed_duration_since(before_first).num_days();
    let is_known = (1900..=9999).contains(&day.year());
    is_known.then_some(if days < 60 { days } else { days + 1 })
}

/// Returns the elapsed part of the day, in units of the last of [`DIGITS`].
fn part_of_day(moment: NaiveDateTime) -> u64 {
    let seconds = u64::from(moment.num_seconds_from_midnight());
    let milliseconds = seconds * 1_000 + u64::from(moment.nanosecond() / 1_000_000).min(999);
    milliseconds * 10_u64.pow(11) / MILLISECONDS_PER_DAY
}

/// Returns as much of a text as fits in a cell, and the mark that shows that there is more.
fn fitting(text: &str) -> (&str, &'static str) {
    // No character has more UTF-16 units than UTF-8 bytes.
    if text.len() <= LONGEST_TEXT || text.encode_utf16().count() <= LONGEST_TEXT {
        return (text, "");
    }
    let mut units = 0;
    let mut places = text.char_indices();
    let end = places.find(|(_, c)| {
        units += c.len_utf16();
        units >= LONGEST_TEXT
    });
    (&text[..end.map_or(text.len(), |(at, _)| at)], "…")
}

/// Writes a text so that an XML reader returns the same text.
fn escape(text: &str, out: &mut Vec<u8>) {
    // In one pass without a branch.
    let may_be_special = text.bytes().fold(false, |found, byte| {
        found | matches!(byte, b'&' | b'<' | b'>' | b'_' | 0xef | 0..0x20)
    });
    if !may_be_special {
        return out.extend_from_slice(text.as_bytes());
    }
    for (at, c) in text.char_indices() {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            // XML does not allow these. Excel writes and reads them in this form.
            '\0'..='\x08' | '\x0b'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {
                put(out, format_args!("_x{:04X}_", u32::from(c)));
            }
            '_' if looks_escaped(&text.as_bytes()[at..]) => out.extend_from_slice(b"_x005F_"),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Whether a text begins like Excel's escape of a character that XML does not allow.
fn looks_escaped(text: &[u8]) -> bool {
    matches!(text, [b'_', b'x', a, b, c, d, b'_', ..]
        if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()))
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}
