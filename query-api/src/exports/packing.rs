//! Compression of files for clients that ask for it with `Accept-Encoding`.

use std::io::{self, Write as _};

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// None.
    Identity,
    Gzip,
    Zstd,
}

/// The fastest levels: a file is compressed while its client waits for it.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

impl Coding {
    /// Returns the coding that the client prefers, the cheapest of several equal ones.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT_ENCODING).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let weighed: Vec<(&str, u16)> = values
            .flat_map(|value| value.split(','))
            .filter_map(weighed)
            .collect();
        let weight_of = |names: &[&str]| {
            let named = |name: &str| {
                weighed
                    .iter()
                    .find(|(one, _)| one.eq_ignore_ascii_case(name))
            };
            let found = names.iter().find_map(|name| named(name));
            found.map(|(_, weight)| *weight)
        };
        let any = weight_of(&["*"]).unwrap_or_default();
        let candidates = [
            (Self::Identity, weight_of(&["identity"]).unwrap_or_default()),
            (Self::Gzip, weight_of(&["gzip", "x-gzip"]).unwrap_or(any)),
            (Self::Zstd, weight_of(&["zstd"]).unwrap_or(any)),
        ];
        let wanted = candidates.into_iter().filter(|(_, weight)| *weight > 0);
        // The last of equals.
        let best = wanted.max_by_key(|(_, weight)| *weight);
        best.map_or(Self::Identity, |(coding, _)| coding)
    }

    /// Returns its name in `Content-Encoding`.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// Parses one coding and its weight in thousandths, 1,000 by default.
fn weighed(item: &str) -> Option<(&str, u16)> {
    let mut parts = item.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    let Some(weight) = weight else {
        return Some((name, 1_000));
    };
    let weight: f32 = weight.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let thousandths = (weight.clamp(0.0, 1.0) * 1_000.0) as u16;
    Some((name, thousandths))
}

/// Compresses a file piece by piece, holding no more than the library's window.
pub(super) enum Packer {
    Identity,
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Packer {
    pub(super) fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Identity,
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // The checksum lets the client detect truncation.
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Adds `piece` and returns the bytes that can be sent, possibly none yet.
    pub(super) fn pack(&mut self, piece: Vec<u8>) -> io::Result<Bytes> {
        let out = match self {
            Self::Identity => return Ok(piece.into()),
            Self::Gzip(encoder) => {
                encoder.write_all(&piece)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(&piece)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Returns the bytes held back so far.
    pub(super) fn flush(&mut self) -> io::Result<Bytes> {
        let out = match self {
            Self::Identity => return Ok(Bytes::new()),
            Self::Gzip(encoder) => {
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.flush()?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Returns the end of the file.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        Ok(match self {
            Self::Identity => Bytes::new(),
            Self::Gzip(encoder) => encoder.finish()?.into(),
            Self::Zstd(encoder) => encoder.finish()?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn asked(value: &str) -> Coding {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
        Coding::from_headers(&headers)
    }

    #[test]
    fn a_client_gets_what_it_likes_best() {
        assert_eq!(Coding::from_headers(&HeaderMap::new()), Coding::Identity);
        for (value, coding) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("br, deflate", Coding::Identity),
            ("gzip, deflate, br", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("GZIP", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("gzip;q=1.0, zstd;q=0.5", Coding::Gzip),
            ("gzip; q=0, *", Coding::Zstd),
            ("zstd;q=0, *;q=0.1", Coding::Gzip),
            ("*;q=0", Coding::Identity),
            ("identity;q=1, gzip;q=0.5", Coding::Identity),
            ("gzip;q=no", Coding::Identity),
        ] {
            assert_eq!(asked(value), coding, "{value}");
        }
    }

    #[test]
    fn what_was_packed_is_what_was_given() {
        let pieces: Vec<Vec<u8>> = (0..500)
            .map(|nth| format!("{nth},Ada,Lovelace\r\n").repeat(nth).into_bytes())
            .collect();
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
            let mut packer = Packer::new(coding).unwrap();
            let mut packed = packer.flush().unwrap().to_vec();
            for piece in &pieces {
                packed.extend_from_slice(&packer.pack(piece.clone()).unwrap());
            }
            packed.extend_from_slice(&packer.finish().unwrap());
            let mut text = Vec::new();
            match coding {
                Coding::Identity => text = packed,
                Coding::Gzip => {
                    let mut reader = flate2::read::GzDecoder::new(&packed[..]);
                    reader.read_to_end(&mut text).unwrap();
                }
                Coding::Zstd => text = zstd::decode_all(&packed[..]).unwrap(),
            }
            assert!(text == pieces.concat(), "{coding:?}");
        }
    }
}
