//! Rows in the binary copy format of Postgres.
//!
//! The binary format is the cheapest both for the server, which formats nothing, and for us, as we
//! do not need to unescape texts or parse times.

use bytes::{Buf, Bytes};
use chrono::{DateTime, Days, NaiveDate, Utc};

use super::column::{Cell, Column, Content};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags and the length of the header's extension.
const HEADER_LEN: usize = SIGNATURE.len() + 4 + 4;
/// Replaces a row's field count after the last row.
const TRAILER: i16 = -1;
/// 2000-01-01T00:00:00Z, from which Postgres counts, in seconds of Unix time.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The error for data that is not rows of these columns.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the copied rows are malformed: {0}")]
pub struct Malformed(&'static str);

/// Consecutive complete rows as received.
#[derive(Clone, Debug, Default)]
pub struct Batch(Bytes);

impl Batch {
    /// Takes whole rows.
    pub fn new(rows: impl Into<Bytes>) -> Self {
        Self(rows.into())
    }

    /// Returns the length of the rows in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `each` with the cells of one row after the other.
    pub fn each_row<E: From<Malformed>>(
        &self,
        columns: &[Column],
        mut each: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest: &[u8] = &self.0;
        let mut cells = Vec::with_capacity(columns.len());
        while !rest.is_empty() {
            let fields = take(&mut rest).map(i16::from_be_bytes)?;
            if fields == TRAILER {
                break;
            }
            if usize::try_from(fields) != Ok(columns.len()) {
                return Err(Malformed("another number of columns").into());
            }
            cells.clear();
            for column in columns {
                cells.push(read_cell(&mut rest, column.content)?);
            }
            each(&cells)?;
        }
        Ok(())
    }
}

/// Removes the header from the first message of a copy.
pub(super) fn strip_header(message: &mut Bytes) -> Result<(), Malformed> {
    if message.len() < HEADER_LEN || !message.starts_with(SIGNATURE) {
        return Err(Malformed("no header"));
    }
    message.advance(HEADER_LEN - 4);
    let extension = usize::try_from(message.get_u32()).unwrap_or(usize::MAX);
    if message.len() < extension {
        return Err(Malformed("a cut header"));
    }
    message.advance(extension);
    Ok(())
}

fn read_cell<'a>(rest: &mut &'a [u8], content: Content) -> Result<Cell<'a>, Malformed> {
    let Ok(length) = usize::try_from(take(rest).map(i32::from_be_bytes)?) else {
        return Ok(Cell::Empty);
    };
    let (mut value, after) = rest
        .split_at_checked(length)
        .ok_or(Malformed("a cut cell"))?;
    *rest = after;
    Ok(match content {
        Content::Text | Content::Id => {
            Cell::Text(std::str::from_utf8(value).map_err(|_| Malformed("text that is not UTF-8"))?)
        }
        Content::Integer => Cell::Integer(take(&mut value).map(i64::from_be_bytes)?),
        Content::Number => Cell::Number(take(&mut value).map(f64::from_be_bytes)?),
        Content::Date => Cell::Date(day(take(&mut value).map(i32::from_be_bytes)?)?),
        Content::Timestamp => Cell::Timestamp(moment(take(&mut value).map(i64::from_be_bytes)?)?),
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (taken, after) = rest.split_first_chunk().ok_or(Malformed("a cut row"))?;
    *rest = after;
    Ok(*taken)
}

/// Converts days since 2000-01-01.
fn day(days: i32) -> Result<NaiveDate, Malformed> {
    let epoch = DateTime::from_timestamp(EPOCH_SECONDS, 0).map(|epoch| epoch.date_naive());
    let distance = Days::new(days.unsigned_abs().into());
    epoch
        .and_then(|epoch| match days {
            0.. => epoch.checked_add_days(distance),
            _ => epoch.checked_sub_days(distance),
        })
        .ok_or(Malformed("a day out of range"))
}

/// Converts microseconds since 2000-01-01T00:00:00Z.
fn moment(microseconds: i64) -> Result<DateTime<Utc>, Malformed> {
    microseconds
        .checked_add(EPOCH_SECONDS * 1_000_000)
        .and_then(DateTime::from_timestamp_micros)
        .ok_or(Malformed("a time out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_its_rows() {
        let columns = [
            Column::text("a", 1),
            Column::integer("b", 1),
            Column::date("c"),
            Column::timestamp("d"),
            Column::number("e", 1),
        ];
        let mut row = Vec::from(5_i16.to_be_bytes());
        row.extend(2_i32.to_be_bytes());
        row.extend("é".bytes());
        row.extend((-1_i32).to_be_bytes());
        row.extend(4_i32.to_be_bytes());
        row.extend((-1_i32).to_be_bytes());
        row.extend(8_i32.to_be_bytes());
        row.extend(1_500_000_i64.to_be_bytes());
        row.extend(8_i32.to_be_bytes());
        row.extend(37.5_f64.to_be_bytes());
        let batch = Batch::new([row.as_slice(), &TRAILER.to_be_bytes()].concat());

        let mut rows = Vec::new();
        let read: Result<(), Malformed> = batch.each_row(&columns, |cells| {
            rows.push(format!("{cells:?}"));
            Ok(())
        });
        read.unwrap();
        assert_eq!(
            rows,
            [
                r#"[Text("é"), Empty, Date(1999-12-31), Timestamp(2000-01-01T00:00:01.500Z), Number(37.5)]"#
            ]
        );
    }

    #[test]
    fn a_cut_batch_is_malformed() {
        let mut row = Vec::from(1_i16.to_be_bytes());
        row.extend(5_i32.to_be_bytes());
        row.extend("four".bytes());
        let read: Result<(), Malformed> =
            Batch::new(row).each_row(&[Column::text("a", 1)], |_| Ok(()));
        assert!(read.is_err());
    }
}
