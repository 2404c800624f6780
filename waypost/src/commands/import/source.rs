//! What a file holds, unpacked where gzip or zstd packed it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::progress::Progress;
use crate::Failure;

/// What both begin with; no CSV and no JSON does.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

pub(super) type Source = BufReader<Box<dyn Read + Send>>;

/// Opens a file, or standard input for `-`, behind so many bytes of what it holds.
pub(super) fn open(path: &Path, byte: u64, progress: &Progress) -> Result<Source, Failure> {
    let opened = if path == Path::new("-") {
        unpacked(io::stdin(), progress)
    } else {
        File::open(path).and_then(|file| opened_at(file, byte, progress))
    };
    opened.map_err(|error| format!("{}: {error}", path.display()).into())
}

fn opened_at(mut file: File, byte: u64, progress: &Progress) -> io::Result<Source> {
    let mut beginning = [0; ZSTD.len()];
    let read = file.read(&mut beginning)?;
    if is_packed(&beginning[..read]) {
        file.rewind()?;
        let mut source = unpacked(file, progress)?;
        // Nobody can tell where in a packed file a place of the unpacked one is.
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
    let beginning = raw.fill_buf()?;
    let unpacked: Box<dyn Read + Send> = if beginning.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(raw))
    } else if beginning.starts_with(ZSTD) {
        Box::new(zstd::Decoder::with_buffer(raw)?)
    } else {
        return Ok(BufReader::new(Box::new(raw)));
    };
    Ok(BufReader::new(unpacked))
}

fn is_packed(beginning: &[u8]) -> bool {
    beginning.starts_with(GZIP) || beginning.starts_with(ZSTD)
}
