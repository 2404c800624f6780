//! Compressed bodies (`Content-Encoding`), decompressed piece by piece: however much a small input
//! expands to, no more of it is held than a piece and the library's window.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use axum::body::BodyDataStream;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use futures::StreamExt as _;
use service::{Full, Held, HttpError};
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer};

/// Bytes decompressed at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// HTTP requires zstd decoders to support a window of 8 MiB.
const LARGEST_WINDOW: u32 = 23;
/// What a gzip decoder holds: its window, its tables, its output and the texts of a header, the
/// longest that it takes.
const GZIP_BYTES: usize = 256 * 1024;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// The coding that a request names.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, HttpError> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Ok(Self::Identity),
            (Some(value), None) => value.to_str().unwrap_or_default().trim(),
            (Some(_), Some(_)) => "",
        };
        match value.to_ascii_lowercase().as_str() {
            "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(HttpError::bad_request(
                "Content-Encoding: must be gzip or zstd, or absent",
            )),
        }
    }
}

/// The body broke off before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    /// The connection failed.
    #[error("the request was interrupted: {0}")]
    Connection(#[from] axum::Error),
    /// It is not compressed as its header says, or not complete.
    #[error("the body is not what its Content-Encoding says: {0}")]
    Packing(#[from] io::Error),
    /// There is no memory to decompress it.
    #[error(transparent)]
    NoRoom(#[from] Full),
}

/// A body as it was before compression.
pub(super) struct Unpacked {
    body: BodyDataStream,
    unpacker: Unpacker,
    /// Received and not yet decompressed.
    packed: Bytes,
    /// Decompressed and not yet taken.
    ready: VecDeque<Bytes>,
    /// Memory that the unpacker holds, out of what all bodies share.
    room: Option<Held>,
    reserved: usize,
}

enum Unpacker {
    Identity,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd {
        decoder: DCtx<'static>,
        /// Whether it is between two frames, where a body may end.
        is_whole: bool,
        /// Whether there may be more output of input that it has already taken.
        has_more: bool,
    },
}

impl Unpacked {
    /// The body of a request; 503 if there is no memory to decompress any.
    pub(super) fn of(request: Request, coding: Coding) -> Result<Self, HttpError> {
        let room = service::body::room(&request);
        let body = request.into_body().into_data_stream();
        let mut unpacked = Self::new(body, coding).map_err(HttpError::internal)?;
        unpacked.room = room;
        let kept = unpacked.keep_room();
        kept.map_err(|Full| service::body::no_room())?;
        Ok(unpacked)
    }

    /// A body without a connection, whose memory nothing bounds.
    pub(super) fn new(body: BodyDataStream, coding: Coding) -> io::Result<Self> {
        Ok(Self {
            body,
            unpacker: Unpacker::new(coding)?,
            packed: Bytes::new(),
            ready: VecDeque::new(),
            room: None,
            reserved: 0,
        })
    }

    /// Returns the next piece, which is not empty, or `None` after the end. It is cancel safe.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(Ok(piece));
            }
            if self.packed.is_empty() && !self.unpacker.has_more() {
                match self.body.next().await {
                    Some(Ok(packed)) => self.packed = packed,
                    Some(Err(error)) => return Some(Err(error.into())),
                    None => {
                        let end = self.unpacker.finish().map_err(BrokenOff::from);
                        return end.map(|end| (!end.is_empty()).then_some(end)).transpose();
                    }
                }
            }
            match self.unpack() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => self.ready.push_back(piece),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn unpack(&mut self) -> Result<Bytes, BrokenOff> {
        let piece = self.unpacker.unpack(&mut self.packed)?;
        self.keep_room()?;
        Ok(piece)
    }

    /// Reserves what the unpacker holds. The size of zstd's window shows in the beginning of a
    /// frame; no more than a piece has been written to it then.
    fn keep_room(&mut self) -> Result<(), Full> {
        let more = self.unpacker.memory().saturating_sub(self.reserved);
        if let Some(room) = &mut self.room
            && more > 0
        {
            room.grow(more)?;
            self.reserved += more;
        }
        Ok(())
    }
}

impl Unpacker {
    fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Identity,
            Coding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Coding::Zstd => Self::Zstd {
                decoder: zstd_decoder()?,
                is_whole: true,
                has_more: false,
            },
        })
    }

    /// The bytes that it holds for itself.
    fn memory(&self) -> usize {
        match self {
            Self::Identity => 0,
            Self::Gzip(_) => GZIP_BYTES,
            Self::Zstd { decoder, .. } => decoder.sizeof(),
        }
    }

    fn has_more(&self) -> bool {
        matches!(self, Self::Zstd { has_more: true, .. })
    }

    /// Consumes some of `packed` and returns what it expands to, about a piece at most.
    fn unpack(&mut self, packed: &mut Bytes) -> io::Result<Bytes> {
        match self {
            Self::Identity => Ok(std::mem::take(packed)),
            Self::Gzip(decoder) => {
                let taken = decoder.write(packed)?;
                packed.advance(taken);
                if packed.is_empty() {
                    decoder.flush()?;
                } else if taken == 0 {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Zstd {
                decoder,
                is_whole,
                has_more,
            } => {
                let mut piece = vec![0; PIECE_BYTES];
                let mut input = InBuffer::around(packed);
                let mut output = OutBuffer::around(&mut piece[..]);
                let hint = decoder.decompress_stream(&mut output, &mut input);
                let hint = hint.map_err(zstd_error)?;
                let (taken, made) = (input.pos(), output.pos());
                packed.advance(taken);
                if taken > 0 || made > 0 {
                    *is_whole = hint == 0;
                }
                *has_more = made == PIECE_BYTES && hint != 0;
                piece.truncate(made);
                Ok(piece.into())
            }
        }
    }

    /// Returns the last of the output, or an error if the input is not complete.
    fn finish(&mut self) -> io::Result<Bytes> {
        match self {
            Self::Identity | Self::Zstd { is_whole: true, .. } => Ok(Bytes::new()),
            Self::Gzip(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Zstd { .. } => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn zstd_decoder() -> io::Result<DCtx<'static>> {
    let mut decoder = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    decoder.init().map_err(zstd_error)?;
    let window = DParameter::WindowLogMax(LARGEST_WINDOW);
    decoder.set_parameter(window).map_err(zstd_error)?;
    Ok(decoder)
}

fn zstd_error(code: zstd_safe::ErrorCode) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures::stream;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd_of(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).unwrap()
    }

    fn unpacked(packed: &[u8], cut: usize, coding: Coding) -> Unpacked {
        let pieces: Vec<_> = packed
            .chunks(cut)
            .map(|piece| Ok::<_, io::Error>(piece.to_vec()))
            .collect();
        let body = Body::from_stream(stream::iter(pieces));
        Unpacked::new(body.into_data_stream(), coding).unwrap()
    }

    async fn all(mut body: Unpacked) -> Result<Vec<u8>, BrokenOff> {
        let mut found = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece?;
            assert!(!piece.is_empty() && piece.len() <= 2 * PIECE_BYTES);
            found.extend_from_slice(&piece);
        }
        Ok(found)
    }

    #[tokio::test]
    async fn what_was_packed_comes_out_however_it_was_cut() {
        let text: Vec<u8> = (0..20_000).flat_map(|nth: u32| nth.to_le_bytes()).collect();
        let (one, two) = text.split_at(30_000);
        let several = |pack: fn(&[u8]) -> Vec<u8>| [pack(one), pack(two)].concat();
        for (coding, packed) in [
            (Coding::Identity, text.clone()),
            (Coding::Gzip, gzip(&text)),
            (Coding::Gzip, several(gzip)),
            (Coding::Zstd, zstd_of(&text)),
            (Coding::Zstd, several(zstd_of)),
        ] {
            for cut in [1, 7, 1_000, packed.len()] {
                let found = all(unpacked(&packed, cut, coding)).await.unwrap();
                assert!(found == text, "{coding:?} in pieces of {cut}");
            }
        }
    }

    #[tokio::test]
    async fn a_little_that_unpacks_to_much_comes_out_piece_by_piece() {
        let zeros = vec![0; 50_000_000];
        for (coding, packed) in [
            (Coding::Gzip, gzip(&zeros)),
            (Coding::Zstd, zstd_of(&zeros)),
        ] {
            assert!(packed.len() < 60_000);
            let mut body = unpacked(&packed, packed.len(), coding);
            let mut length = 0;
            while let Some(piece) = body.next().await {
                let piece = piece.unwrap();
                assert!(piece.len() <= 2 * PIECE_BYTES, "{}", piece.len());
                length += piece.len();
            }
            assert_eq!(length, zeros.len(), "{coding:?}");
        }
    }

    #[tokio::test]
    async fn a_truncated_or_uncompressed_body_is_reported() {
        let text = b"{\"id\": \"a\"}\n".repeat(1_000);
        for (coding, packed) in [(Coding::Gzip, gzip(&text)), (Coding::Zstd, zstd_of(&text))] {
            let part = &packed[..packed.len() - 3];
            assert!(all(unpacked(part, 50, coding)).await.is_err(), "{coding:?}");
            assert!(
                all(unpacked(&text, 50, coding)).await.is_err(),
                "{coding:?}"
            );
            assert_eq!(
                all(unpacked(b"", 50, coding)).await.ok(),
                (coding == Coding::Zstd).then(Vec::new)
            );
        }
    }

    /// A frame that asks for a window of 8 MiB and holds one block, which is not compressed.
    fn zstd_with_largest_window(text: &[u8]) -> Vec<u8> {
        const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        let window = u8::try_from(LARGEST_WINDOW - 10).unwrap() << 3;
        let block = (u32::try_from(text.len()).unwrap() << 3) | 1;
        let block = &block.to_le_bytes()[..3];
        [&MAGIC[..], &[0, window], block, text].concat()
    }

    #[tokio::test]
    async fn what_a_decoder_holds_is_known_from_the_beginning_of_its_input() {
        const WINDOW: usize = 1 << LARGEST_WINDOW;
        let memory = |body: &Unpacked| body.unpacker.memory();
        let text = b"{\"id\": \"a\"}\n";
        for (packed, expected) in [
            (zstd_with_largest_window(text), WINDOW..WINDOW + 1024 * 1024),
            (zstd_of(text), 100..4 * 1024 * 1024),
        ] {
            let mut body = unpacked(&packed, 1, Coding::Zstd);
            assert!((1..WINDOW / 16).contains(&memory(&body)));
            assert_eq!(body.next().await.unwrap().unwrap()[0], text[0]);
            let held = memory(&body);
            assert!(expected.contains(&held), "{held}");
            while body.next().await.transpose().unwrap().is_some() {}
            assert_eq!(memory(&body), held);
        }
        assert!(memory(&unpacked(b"", 1, Coding::Gzip)) > 0);
        assert_eq!(memory(&unpacked(b"", 1, Coding::Identity)), 0);
    }
}
