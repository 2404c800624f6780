//! Everything of a workbook except its rows, as written by the library.

use std::io::{self, Cursor, Read as _};

use rust_xlsxwriter::{DocProperties, Format, Workbook, XlsxError};
use zip::ZipArchive;

use super::PACKING;
use crate::exports::Title;
use crate::exports::column::{Column, Kind};

/// A workbook whose sheets have a header and no rows yet.
pub(super) struct Frame {
    parts: Vec<u8>,
}

/// The formats of cells other than text, as indices of the workbook's styles.
#[derive(Clone, Copy)]
pub(super) struct Styles {
    pub(super) integer: u32,
    pub(super) date: u32,
    pub(super) timestamp: u32,
}

/// The text before and after the rows of a sheet.
pub(super) struct Sheet {
    pub(super) head: String,
    pub(super) tail: String,
}

impl Frame {
    /// Creates a workbook with the given number of sheets.
    pub(super) fn new(
        kind: &'static Kind,
        title: &Title,
        sheets: usize,
    ) -> Result<Self, XlsxError> {
        let mut workbook = Workbook::new();
        let properties = DocProperties::new()
            .set_title(kind.title)
            .set_company(&title.organization)
            .set_creation_datetime(&title.at);
        workbook
            .set_properties(&properties)
            .set_zip_compression_level(PACKING);
        let header = Format::new().set_bold();
        for number in 1..=sheets {
            let name = match number {
                1 => kind.title.to_owned(),
                number => format!("{} {number}", kind.title),
            };
            let sheet = workbook.add_worksheet_with_constant_memory()?;
            sheet.set_name(name)?.set_freeze_panes(1, 0)?;
            for (column, index) in kind.columns.iter().zip(0..) {
                sheet.set_column_width(index, width(column))?;
                sheet.write_string_with_format(0, index, column.name, &header)?;
            }
            // A row that only reveals the indices of the formats.
            for (format, index) in formats().iter().zip(0..) {
                sheet.write_number_with_format(1, index, 0, format)?;
            }
        }
        let mut parts = Vec::new();
        workbook.save_to_writer(&mut parts)?;
        Ok(Self { parts })
    }

    /// Returns all parts, each under its name.
    pub(super) fn parts(&self) -> io::Result<ZipArchive<Cursor<&[u8]>>> {
        Ok(ZipArchive::new(Cursor::new(&self.parts[..]))?)
    }

    /// Returns the sheet of a number, from 1.
    pub(super) fn sheet(&self, number: usize) -> io::Result<Sheet> {
        let text = self.text(number)?;
        let (head, rest) = split(&text, "<row r=\"2\"")?;
        let (_, tail) = split(rest, "</sheetData>")?;
        // The number of rows is not known yet, and is optional.
        let (before, dimension) = split(head, "<dimension")?;
        let (_, after) = split(dimension, "/>")?;
        Ok(Sheet {
            head: format!("{before}{}", &after["/>".len()..]),
            tail: tail.to_owned(),
        })
    }

    /// Returns the indices of the formats.
    pub(super) fn styles(&self) -> io::Result<Styles> {
        let text = self.text(1)?;
        let (_, row) = split(&text, "<row r=\"2\"")?;
        let mut numbers = row
            .split(" s=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok());
        let mut next = || numbers.next().ok_or_else(unknown);
        Ok(Styles {
            integer: next()?,
            date: next()?,
            timestamp: next()?,
        })
    }

    fn text(&self, number: usize) -> io::Result<String> {
        let mut text = String::new();
        let mut parts = self.parts()?;
        let mut part = parts.by_name(&part_of(number))?;
        part.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Returns the name of a sheet's part.
pub(super) fn part_of(number: usize) -> String {
    format!("xl/worksheets/sheet{number}.xml")
}

/// In the order of [`Styles`].
fn formats() -> [Format; 3] {
    // Without a format, long numbers would be shown as powers of ten.
    ["0", "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"].map(|shown| Format::new().set_num_format(shown))
}

fn split<'t>(text: &'t str, at: &str) -> io::Result<(&'t str, &'t str)> {
    let place = text.find(at).ok_or_else(unknown)?;
    Ok(text.split_at(place))
}

fn unknown() -> io::Error {
    io::Error::other("the library has written a sheet of another form")
}

/// Wide enough for the usual cell and for the bold heading.
fn width(column: &Column) -> f64 {
    let heading = u8::try_from(column.name.len()).unwrap_or(u8::MAX);
    f64::from(column.width.max(heading)) + 2.0
}
