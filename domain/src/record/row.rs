//! Records from the rows of a file.

use super::Draft;
use super::kind::Kind;
use super::values::{Values, known};
use crate::FieldError;

/// A file's header row, parsed.
#[derive(Clone, Debug)]
pub struct Columns {
    kind: Kind,
    names: Vec<String>,
}

impl Columns {
    /// Parses a header row; its names are the fields of the kind, in any order.
    pub fn new<'h>(
        kind: Kind,
        headers: impl IntoIterator<Item = &'h str>,
    ) -> Result<Self, FieldError> {
        let mut names: Vec<String> = Vec::new();
        for header in headers {
            // Spreadsheets begin their files with a byte-order mark.
            let name = header.trim_start_matches('\u{feff}').trim();
            if names.iter().any(|known| known == name) {
                return Err(FieldError::new(name, "appears twice in the header row"));
            }
            names.push(known(kind, name.to_owned())?);
        }
        Ok(Self { kind, names })
    }

    /// Reads a record from a row's cells, in the order of the header row.
    pub fn draft<'c>(&self, cells: impl IntoIterator<Item = &'c str>) -> Result<Draft, FieldError> {
        let names = &self.names;
        let cells = cells.into_iter().collect();
        Draft::read(self.kind, Values::Row { names, cells })
    }
}
