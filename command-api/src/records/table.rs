//! Lines of a CSV: a header row of field names, then a record for each row.

use bytes::Bytes;
use domain::FieldError;
use domain::record::{Columns, Draft, Kind};

use super::cells::{Cells, delimiter_of};

/// A parsed header row.
pub(super) struct Table {
    columns: Columns,
    width: usize,
    delimiter: u8,
    /// As received: the rows mean nothing without it.
    header: Bytes,
}

impl Table {
    /// Parses the header row.
    pub(super) fn new(kind: Kind, header: Bytes) -> Result<Self, FieldError> {
        let delimiter = delimiter_of(&header);
        let mut cells = Cells::new(delimiter);
        let names = cells.of(&header);
        let names = names.map_err(|error| FieldError::new("header row", error))?;
        Ok(Self {
            columns: Columns::new(kind, names.iter().copied())?,
            width: names.len(),
            delimiter,
            header,
        })
    }

    /// Returns what splits its rows.
    pub(super) fn cells(&self) -> Cells {
        Cells::new(self.delimiter)
    }

    /// Reads a record from a row.
    pub(super) fn draft(&self, row: &[u8], cells: &mut Cells) -> Result<Draft, String> {
        let cells = cells.of(row)?;
        if cells.len() != self.width {
            let (found, width) = (cells.len(), self.width);
            return Err(format!("has {found} cells, the header row has {width}"));
        }
        let draft = self.columns.draft(cells);
        draft.map_err(|error| error.to_string())
    }

    /// The meaning of a row: the same row under another header means something else.
    pub(super) fn meaning(&self, row: &[u8]) -> Vec<u8> {
        [&self.header[..], b"\n", row].concat()
    }
}
