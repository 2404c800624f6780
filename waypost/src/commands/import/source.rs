//! The contents of a file, unpacked if gzip or zstd packed it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ring::digest::{Context, SHA256};

use super::progress::Progress;
use crate::Failure;

/// How a file is packed.
enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// Detected from the beginning: no CSV and no JSON begins like these.
    fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

pub(super) type Source = BufReader<Box<dyn Read + Send>>;

/// Opens a file, or standard input for `-`, after the given number of unpacked bytes.
pub(super) fn open(path: &Path, byte: u64, progress: &Progress) -> Result<Source, Failure> {
    let opened = if path == Path::new("-") {
        unpacked(io::stdin(), progress)
    } else {
        File::open(path).and_then(|file| opened_at(file, byte, progress))
    };
    opened.map_err(|error| format!("{}: {error}", path.display()).into())
}

fn opened_at(mut file: File, byte: u64, progress: &Progress) -> io::Result<Source> {
    let mut beginning = [0; 4];
    let read = file.read(&mut beginning)?;
    if Packing::of(&beginning[..read]).is_some() {
        file.rewind()?;
        let mut source = unpacked(file, progress)?;
        // A place in the unpacked contents cannot be located in the packed file.
        io::copy(&mut source.by_ref().take(byte), &mut io::sink())?;
        progress.begin_here();
        return Ok(source);
    }
    file.seek(SeekFrom::Start(byte))?;
    progress.begin_at(byte);
    unpacked(file, progress)
}

fn unpacked(raw: impl Read + Send + 'static, progress: &Progress) -> io::Result<Source> {
    let mut raw = BufReader::new(progress.of_reading(raw));
    let packing = Packing::of(raw.fill_buf()?);
    let unpacked: Box<dyn Read + Send> = match packing {
        None => Box::new(raw),
        Some(Packing::Gzip) => Box::new(MultiGzDecoder::new(raw)),
        Some(Packing::Zstd) => Box::new(zstd::Decoder::with_buffer(raw)?),
    };
    Ok(BufReader::new(unpacked))
}

/// The digest of the first bytes of a file's unpacked contents.
pub(super) fn digest_of_beginning(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let contents = unpacked(File::open(path)?, &Progress::none())?;
    digest_of(contents.take(bytes))
}

/// The digest of all that a reader reads.
pub(super) fn digest_of(mut source: impl Read) -> io::Result<Vec<u8>> {
    let (mut digest, mut piece) = (Context::new(&SHA256), vec![0; 256 * 1024]);
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(digest.finish().as_ref().to_vec()),
            read => digest.update(&piece[..read]),
        }
    }
}
