//! A PDF file as a sequence of objects, each written as soon as it is complete, so that a file of
//! any length only needs eight bytes of memory per object.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::{Chunk, Ref};

/// The version, and bytes that show programs that the file is not text.
const HEADER: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n";

/// The objects written so far.
pub(super) struct PdfFile<W> {
    out: W,
    length: u64,
    /// The offset of each object, by its number less 1; 0 until it is written.
    offsets: Vec<u64>,
}

impl<W: Write> PdfFile<W> {
    /// Begins a file.
    pub(super) fn new(out: W) -> io::Result<Self> {
        let mut file = Self {
            out,
            length: 0,
            offsets: Vec::new(),
        };
        file.put(HEADER)?;
        Ok(file)
    }

    /// Reserves the next object's number. The object may be written at any later time.
    pub(super) fn allocate(&mut self) -> Ref {
        self.offsets.push(0);
        Ref::new(i32::try_from(self.offsets.len()).unwrap_or(i32::MAX))
    }

    /// Writes the object that `chunk` holds.
    pub(super) fn write(&mut self, id: Ref, chunk: &Chunk) -> io::Result<()> {
        let offset = usize::try_from(id.get() - 1)
            .ok()
            .and_then(|index| self.offsets.get_mut(index))
            .ok_or_else(|| io::Error::other("an object of the PDF was never allocated"))?;
        *offset = self.length;
        self.put(chunk.as_bytes())
    }

    /// Writes the table of objects, which completes the file.
    pub(super) fn finish(mut self, catalog: Ref, info: Ref) -> io::Result<W> {
        let table = self.length;
        let size = self.offsets.len() + 1;
        let (catalog, info) = (catalog.get(), info.get());
        write!(self.out, "xref\n0 {size}\n0000000000 65535 f\r\n")?;
        for offset in &self.offsets {
            write!(self.out, "{offset:010} 00000 n\r\n")?;
        }
        write!(
            self.out,
            "trailer\n<< /Size {size} /Root {catalog} 0 R /Info {info} 0 R >>\n\
             startxref\n{table}\n%%EOF\n"
        )?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Compresses bytes as a `FlateDecode` stream at the fastest level: better compression would take
/// most of the time that a client waits for a file.
pub(super) fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let packed = Vec::with_capacity(bytes.len() / 3);
    let mut encoder = ZlibEncoder::new(packed, Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
