//! Records from the rows of a file.

use super::Draft;
use super::kind::Kind;
use super::value::Given;
use crate::FieldError;

/// A file's header row, understood.
#[derive(Clone, Debug)]
pub struct Columns {
    kind: Kind,
    names: Vec<String>,
}

impl Columns {
    /// Takes a header row; its names are the fields of the kind, in any order.
    pub fn new<'h>(
        kind: Kind,
        headers: impl IntoIterator<Item = &'h str>,
    ) -> Result<Self, FieldError> {
        let mut names: Vec<String> = Vec::new();
        for header in headers {
            // Spreadsheets begin their files with a byte-order mark.
            let name = header.trim_start_matches('\u{feff}').trim();
            if names.iter().any(|known| known == name) {
                return Err(FieldError::new(name, "stands twice in the header row"));
            }
            // An empty cell fits every field, so only the name is tried here.
            Draft::new(kind).set(name, Given::Cell(""))?;
            names.push(name.to_owned());
        }
        Ok(Self { kind, names })
    }

    /// Reads a record from a row's cells, in the order of the header row.
    pub fn draft<'c>(&self, cells: impl IntoIterator<Item = &'c str>) -> Result<Draft, FieldError> {
        let mut draft = Draft::new(self.kind);
        for (name, cell) in self.names.iter().zip(cells) {
            draft.set(name, Given::Cell(cell))?;
        }
        draft.checked()
    }
}
