//! Values that are larger than a message may be.
//!
//! The key's own message carries the beginning and refers to the pieces that follow, which are
//! stored under keys of their own. They are written before it, in one of two sets in turn, so that
//! those of the previous value stay until the key's message replaces it. A set that no value uses
//! any more is not removed.

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use bytes::{Bytes, BytesMut};
use uuid::Uuid;

use super::{Bucket, marked};
use crate::Mark;

/// Bytes of a value in one message, with room for what surrounds it.
const PIECE_BYTES: usize = 900 * 1024;
/// Header of a key's message: the set that the other pieces are in, and their number.
const PIECES: &str = "Waypost-Pieces";
/// Header of each message: the value it belongs to.
const VALUE: &str = "Waypost-Value";
const SETS: [&str; 2] = ["a", "b"];
/// How often to read pieces that do not fit: they may just have been replaced.
const TRIES: usize = 3;

/// The pieces that follow the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    set: &'static str,
    count: usize,
    /// The value that they belong to.
    value: String,
}

impl Pieces {
    /// Reads them from a key's message; `None` if it carries the whole value.
    pub(super) fn of(message: &StreamMessage) -> Option<Self> {
        let told = message.headers.get(PIECES)?.as_str();
        let (set, count) = told.split_once(' ')?;
        Some(Self {
            set: SETS.into_iter().find(|known| *known == set)?,
            count: count.parse().ok()?,
            value: message.headers.get(VALUE)?.to_string(),
        })
    }

    fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(PIECES, format!("{} {}", self.set, self.count));
        headers.insert(VALUE, self.value.as_str());
    }
}

impl Bucket {
    /// Puts all of a value but its beginning, which it returns, and adds to `headers` where the
    /// rest is.
    pub(super) async fn put_pieces(
        &self,
        key: &str,
        mut value: Bytes,
        headers: &mut HeaderMap,
    ) -> Result<Bytes, String> {
        if value.len() <= PIECE_BYTES {
            return Ok(value);
        }
        let first = value.split_to(PIECE_BYTES);
        let now = self.find_with_leader(&self.subject(key)).await?;
        let now = now.as_ref().and_then(Pieces::of);
        let [one, other] = SETS;
        let pieces = Pieces {
            set: match now {
                Some(now) if now.set == one => other,
                _ => one,
            },
            count: value.len().div_ceil(PIECE_BYTES),
            value: Uuid::new_v4().to_string(),
        };
        for number in 1..=pieces.count {
            let piece = value.split_to(value.len().min(PIECE_BYTES));
            let mut headers = HeaderMap::new();
            headers.insert(VALUE, pieces.value.as_str());
            let key = key_of(key, pieces.set, number);
            self.publish(&key, headers, piece).await?;
        }
        pieces.tell(headers);
        Ok(first)
    }

    /// Reads a value that was found to have several pieces from the leader: a replica may refer to
    /// some that have been replaced since.
    pub(super) async fn whole(&self, key: &str) -> Result<Option<(Bytes, Mark)>, String> {
        for _ in 0..TRIES {
            let Some(first) = self.find_with_leader(&self.subject(key)).await? else {
                return Ok(None);
            };
            let Some(pieces) = Pieces::of(&first) else {
                return Ok(Some(marked(first)));
            };
            let (first, mark) = marked(first);
            if let Some(whole) = self.join(key, first, &pieces).await? {
                return Ok(Some((whole, mark)));
            }
        }
        tracing::warn!(key, "The pieces of a value do not fit together");
        Ok(None)
    }

    async fn join(
        &self,
        key: &str,
        first: Bytes,
        pieces: &Pieces,
    ) -> Result<Option<Bytes>, String> {
        let mut whole = BytesMut::from(first);
        for number in 1..=pieces.count {
            let subject = self.subject(&key_of(key, pieces.set, number));
            let piece = self.find_with_leader(&subject).await?;
            let belongs = |piece: &StreamMessage| {
                let value = piece.headers.get(VALUE);
                value.is_some_and(|value| value.as_str() == pieces.value)
            };
            match piece.filter(belongs) {
                Some(piece) => whole.extend_from_slice(&piece.payload),
                None => return Ok(None),
            }
        }
        Ok(Some(whole.freeze()))
    }
}

/// Whether a piece is stored under this key, not a value.
pub(super) fn is_of_piece(key: &str) -> bool {
    let mut parts = key.rsplit('.');
    let number = parts
        .next()
        .is_some_and(|part| part.parse::<usize>().is_ok());
    number && parts.next().is_some_and(|part| SETS.contains(&part))
}

fn key_of(key: &str, set: &str, number: usize) -> String {
    format!("{key}.{set}.{number}")
}
