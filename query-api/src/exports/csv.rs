//! CSV according to RFC 4180, safe to open in a spreadsheet.

use std::io::Write as _;

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Timelike, Utc};

use super::column::{Cell, Column};

/// The line end of RFC 4180.
const LINE_END: &[u8] = b"\r\n";

/// Writes the row of column names.
pub fn write_header(columns: &[Column], out: &mut Vec<u8>) {
    for (index, column) in columns.iter().enumerate() {
        separate(index, out);
        write_after(b"", column.name, out);
    }
    out.extend_from_slice(LINE_END);
}

/// Writes one row.
pub fn write_row(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    for (index, cell) in cells.iter().enumerate() {
        separate(index, out);
        match *cell {
            Cell::Empty => {}
            Cell::Text(text) => write_text(text, out),
            Cell::Integer(number) => write_formatted(out, format_args!("{number}")),
            Cell::Number(number) => write_formatted(out, format_args!("{number}")),
            Cell::Date(day) => write_day(day, out),
            Cell::Timestamp(moment) => write_moment(moment, out),
        }
    }
    out.extend_from_slice(LINE_END);
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let guard: &[u8] = if is_run_by_spreadsheets(text) {
        b"'"
    } else {
        b""
    };
    write_after(guard, text, out);
}

/// Writes a cell of the guard and the text.
fn write_after(guard: &[u8], text: &str, out: &mut Vec<u8>) {
    if needs_quotes(text) {
        out.push(b'"');
        out.extend_from_slice(guard);
        write_doubled(text, out);
        out.push(b'"');
    } else {
        out.extend_from_slice(guard);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Whether the text contains characters that require quotation marks, found in one pass without a
/// branch.
fn needs_quotes(text: &str) -> bool {
    text.bytes().fold(false, |found, byte| {
        found | matches!(byte, b'"' | b',' | b'\r' | b'\n')
    })
}

/// Writes the text with each quotation mark doubled.
fn write_doubled(text: &str, out: &mut Vec<u8>) {
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
}

/// Whether a spreadsheet could interpret the text as a formula. Numbers and international phone
/// numbers begin like formulas but are not. Only the beginning counts: see
/// `docs/decisions/0108-cells-guarded-at-their-start.md`.
pub fn is_run_by_spreadsheets(text: &str) -> bool {
    matches!(
        text.as_bytes().first(),
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r' | b'\n')
    ) && !is_number(text)
        && !is_e164(text)
}

/// Whether the text is a number as written in JSON.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(are_digits)
        && exponent.is_none_or(are_digits)
}

/// Whether the text is `+`, a country code and a number, 15 digits at most.
fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len()) && !digits.starts_with('0') && are_digits(digits)
    })
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn write_day(day: NaiveDate, out: &mut Vec<u8>) {
    write_formatted(out, format_args!("{day}"));
}

/// Writes a time as the API's JSON does: with three or six fractional digits, or none.
fn write_moment(moment: DateTime<Utc>, out: &mut Vec<u8>) {
    let local = moment.naive_utc();
    let (Ok(year @ 0..=9_999), 0) = (u32::try_from(local.year()), local.nanosecond() % 1_000)
    else {
        let text = moment.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        return out.extend_from_slice(text.as_bytes());
    };
    write_digits::<4>(year, out);
    out.push(b'-');
    write_digits::<2>(local.month(), out);
    out.push(b'-');
    write_digits::<2>(local.day(), out);
    out.push(b'T');
    write_digits::<2>(local.hour(), out);
    out.push(b':');
    write_digits::<2>(local.minute(), out);
    out.push(b':');
    write_digits::<2>(local.second(), out);
    let microseconds = local.nanosecond() / 1_000;
    if microseconds == 0 {
    } else if microseconds.is_multiple_of(1_000) {
        out.push(b'.');
        write_digits::<3>(microseconds / 1_000, out);
    } else {
        out.push(b'.');
        write_digits::<6>(microseconds, out);
    }
    out.push(b'Z');
}

/// Writes a number of at most `N` digits with exactly `N`.
fn write_digits<const N: usize>(mut number: u32, out: &mut Vec<u8>) {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

fn write_formatted(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests;
