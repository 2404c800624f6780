//! Excel workbooks, written row by row in constant memory.
//!
//! The library writes all parts of a workbook except its rows. These are written as they arrive,
//! compressed immediately, into a separate file, and copied unchanged into the workbook at the end.
//! The caller provides that file and the one in which the workbook is put together, so that it can
//! limit their size.

mod cells;
mod frame;

use std::io::{self, BufWriter, Read, Seek, Write};

use rust_xlsxwriter::XlsxError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use self::cells::Cells;
use self::frame::{Frame, Sheet, part_of};
use super::Title;
use super::column::{Cell, Kind};

/// Rows per sheet, its header included.
const ROWS_PER_SHEET: u32 = 1_048_576;
/// Maximum bytes per sheet: beyond 4 GiB it would need a format that not all programs read.
const BYTES_PER_SHEET: u64 = 3 * 1024 * 1024 * 1024;
/// The compression level of the file. The usual level, 6, takes three and a half times as long as
/// this one, more than the rows themselves, and saves an eighth. Level 1 is hardly faster and costs
/// half as many bytes more.
const PACKING: u8 = 2;
/// Rows are compressed in pieces of about this many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Writes the rows of one kind into a workbook, with the help of files `S`.
pub struct ExcelWriter<S: Read + Write + Seek> {
    kind: &'static Kind,
    title: Title,
    rows_per_sheet: u32,
    /// The heads and tails of the first sheet and of all others.
    forms: [Sheet; 2],
    cells: Cells,
    /// The compressed sheets.
    packed: ZipWriter<BufWriter<S>>,
    piece: Vec<u8>,
    sheets: usize,
    next_row: u32,
    bytes: u64,
}

impl<S: Read + Write + Seek> ExcelWriter<S> {
    /// Creates a workbook with the header of its first sheet. Its sheets are kept in `packed`, an
    /// empty file, until it is finished.
    pub fn new(kind: &'static Kind, title: Title, packed: S) -> io::Result<Self> {
        Self::with_rows_per_sheet(kind, title, packed, ROWS_PER_SHEET)
    }

    /// Creates a workbook whose sheets are full at `rows_per_sheet`, the header included.
    pub fn with_rows_per_sheet(
        kind: &'static Kind,
        title: Title,
        packed: S,
        rows_per_sheet: u32,
    ) -> io::Result<Self> {
        let frame = Frame::new(kind, &title, 2).map_err(failed)?;
        let mut writer = Self {
            forms: [frame.sheet(1)?, frame.sheet(2)?],
            cells: Cells::new(frame.styles()?, kind.columns.len()),
            packed: ZipWriter::new(BufWriter::new(packed)),
            piece: Vec::with_capacity(2 * PIECE_BYTES),
            sheets: 0,
            next_row: 0,
            bytes: 0,
            kind,
            title,
            rows_per_sheet,
        };
        writer.begin_sheet()?;
        Ok(writer)
    }

    /// Writes one row, on a new sheet if this one is full.
    pub fn write_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if self.next_row == self.rows_per_sheet || self.bytes >= BYTES_PER_SHEET {
            self.end_sheet()?;
            self.begin_sheet()?;
        }
        self.next_row += 1;
        self.cells.write_row(self.next_row, cells, &mut self.piece);
        if self.piece.len() >= PIECE_BYTES {
            self.pack()?;
        }
        Ok(())
    }

    /// Puts the workbook together in `whole`, an empty file, and writes it to `out`.
    pub fn finish(mut self, whole: S, mut out: impl Write) -> io::Result<()> {
        self.end_sheet()?;
        let frame = Frame::new(self.kind, &self.title, self.sheets).map_err(failed)?;
        let mut parts = frame.parts()?;
        let mut sheets = ZipArchive::new(self.packed.finish()?.into_inner()?)?;
        // The size of a raw copy must be known before its header is written, or programs that read
        // sequentially do not find the next part.
        let mut whole = ZipWriter::new(BufWriter::new(whole));
        for place in 0..parts.len() {
            let part = parts.by_index_raw(place)?;
            match sheets.index_for_name(&part.name()?) {
                Some(place) => whole.raw_copy_file(sheets.by_index_raw(place)?)?,
                None => whole.raw_copy_file(part)?,
            }
        }
        // Makes room for the copy.
        drop(sheets);
        let mut whole = whole.finish()?.into_inner()?;
        whole.rewind()?;
        io::copy(&mut whole, &mut out)?;
        out.flush()
    }

    fn begin_sheet(&mut self) -> io::Result<()> {
        let form = usize::from(self.sheets > 0);
        self.sheets += 1;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(PACKING.into()))
            .last_modified_time(zip::DateTime::default());
        self.packed.start_file(part_of(self.sheets), options)?;
        self.piece
            .extend_from_slice(self.forms[form].head.as_bytes());
        self.next_row = 1;
        self.bytes = 0;
        Ok(())
    }

    fn end_sheet(&mut self) -> io::Result<()> {
        let form = usize::from(self.sheets > 1);
        self.piece
            .extend_from_slice(self.forms[form].tail.as_bytes());
        self.pack()
    }

    fn pack(&mut self) -> io::Result<()> {
        self.packed.write_all(&self.piece)?;
        self.bytes += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

fn failed(error: XlsxError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests;
