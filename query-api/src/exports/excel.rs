//! Excel workbooks, written row by row in constant memory.

use std::io::Write;

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Utc};
use rust_xlsxwriter::{DocProperties, Format, Workbook, Worksheet, XlsxError};

use super::Title;
use super::column::{Cell, Column, Kind};

/// The rows that a sheet holds, its header included.
const ROWS_PER_SHEET: u32 = 1_048_576;
/// The longest text of a cell in UTF-16 units; a longer one is shortened visibly.
const LONGEST_TEXT: usize = 32_767;
/// Numbers of more digits lose their last ones in Excel and are written as text.
const LARGEST_NUMBER: i64 = 999_999_999_999_999;
/// How hard the file is packed. The usual level, 6, takes three and a half times as long as this
/// one, more than the rows themselves, and saves an eighth; level 1 is hardly quicker and costs half
/// as many bytes more.
const PACKING: u8 = 2;

/// Writes the rows of one kind into a workbook.
pub struct ExcelWriter {
    workbook: Workbook,
    kind: &'static Kind,
    rows_per_sheet: u32,
    sheets: usize,
    next_row: u32,
    formats: Formats,
}

struct Formats {
    header: Format,
    integer: Format,
    date: Format,
    timestamp: Format,
}

impl ExcelWriter {
    /// A workbook with the header of its first sheet.
    pub fn new(kind: &'static Kind, title: &Title) -> Result<Self, XlsxError> {
        Self::with_rows_per_sheet(kind, title, ROWS_PER_SHEET)
    }

    /// A workbook whose sheets are full at `rows_per_sheet`, the header included.
    pub fn with_rows_per_sheet(
        kind: &'static Kind,
        title: &Title,
        rows_per_sheet: u32,
    ) -> Result<Self, XlsxError> {
        let mut workbook = Workbook::new();
        let properties = DocProperties::new()
            .set_title(kind.title)
            .set_company(&title.organization)
            .set_creation_datetime(&title.at);
        workbook
            .set_properties(&properties)
            .set_zip_compression_level(PACKING);
        let mut writer = Self {
            workbook,
            kind,
            rows_per_sheet,
            sheets: 0,
            next_row: 0,
            formats: Formats {
                header: Format::new().set_bold(),
                // Without one, long numbers would be shown as powers of ten.
                integer: Format::new().set_num_format("0"),
                date: Format::new().set_num_format("yyyy-mm-dd"),
                timestamp: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
            },
        };
        writer.begin_sheet()?;
        Ok(writer)
    }

    /// Writes one row, on a further sheet where this one is full.
    pub fn write_row(&mut self, cells: &[Cell<'_>]) -> Result<(), XlsxError> {
        if self.next_row == self.rows_per_sheet {
            self.begin_sheet()?;
        }
        let row = self.next_row;
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1)?;
        for (cell, column) in cells.iter().zip(0..) {
            write_cell(sheet, row, column, *cell, &self.formats)?;
        }
        self.next_row += 1;
        Ok(())
    }

    /// Writes the finished workbook out.
    pub fn finish(mut self, out: impl Write + Send) -> Result<(), XlsxError> {
        self.workbook.save_to_writer(out)
    }

    fn begin_sheet(&mut self) -> Result<(), XlsxError> {
        self.sheets += 1;
        let name = match self.sheets {
            1 => self.kind.title.to_owned(),
            number => format!("{} {number}", self.kind.title),
        };
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(name)?.set_freeze_panes(1, 0)?;
        for (column, index) in self.kind.columns.iter().zip(0..) {
            sheet.set_column_width(index, width(column))?;
            sheet.write_string_with_format(0, index, column.name, &self.formats.header)?;
        }
        self.next_row = 1;
        Ok(())
    }
}

/// Wide enough for the usual cell and for the bold heading.
fn width(column: &Column) -> f64 {
    let heading = u8::try_from(column.name.len()).unwrap_or(u8::MAX);
    f64::from(column.width.max(heading)) + 2.0
}

fn write_cell(
    sheet: &mut Worksheet,
    row: u32,
    column: u16,
    cell: Cell<'_>,
    formats: &Formats,
) -> Result<(), XlsxError> {
    match cell {
        Cell::Empty | Cell::Text("") => {}
        Cell::Text(text) => {
            sheet.write_string(row, column, fitting(text))?;
        }
        Cell::Integer(number) if number.abs() <= LARGEST_NUMBER => {
            // Exact: the number has at most 15 digits.
            #[expect(clippy::cast_precision_loss)]
            let number = number as f64;
            sheet.write_number_with_format(row, column, number, &formats.integer)?;
        }
        Cell::Integer(number) => {
            sheet.write_string(row, column, number.to_string())?;
        }
        Cell::Number(number) => {
            sheet.write_number(row, column, number)?;
        }
        Cell::Date(day) if is_known_to_excel(day) => {
            sheet.write_datetime_with_format(row, column, day, &formats.date)?;
        }
        Cell::Date(day) => {
            sheet.write_string(row, column, day.to_string())?;
        }
        Cell::Timestamp(moment) => write_moment(sheet, row, column, moment, formats)?,
    }
    Ok(())
}

fn write_moment(
    sheet: &mut Worksheet,
    row: u32,
    column: u16,
    moment: DateTime<Utc>,
    formats: &Formats,
) -> Result<(), XlsxError> {
    if is_known_to_excel(moment.date_naive()) {
        sheet.write_datetime_with_format(row, column, moment.naive_utc(), &formats.timestamp)?;
    } else {
        let text = moment.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        sheet.write_string(row, column, text)?;
    }
    Ok(())
}

/// Excel counts days from 1900 and knows no year of five digits.
fn is_known_to_excel(day: NaiveDate) -> bool {
    (1900..=9999).contains(&day.year())
}

fn fitting(text: &str) -> String {
    // No character has more UTF-16 units than UTF-8 bytes.
    if text.len() <= LONGEST_TEXT || text.encode_utf16().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let mut units = 0;
    let mut fitting: String = text
        .chars()
        .take_while(|c| {
            units += c.len_utf16();
            units < LONGEST_TEXT
        })
        .collect();
    fitting.push('…');
    fitting
}

#[cfg(test)]
mod tests;
