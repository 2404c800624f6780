//! The beginning of an upload with an `Idempotency-Key`. Its digest makes the upload's receipt, so
//! that another body under the same key is refused before any of it is written.

use std::convert::Infallible;
use std::time::Duration;

use event_log::Position;
use ring::digest::{Context, Digest, SHA256};
use schemas::Log;
use service::HttpError;
use tokio::time::Instant;

use super::answers::Sender;
use super::lines::{Came, Lines};
use super::unpacked::BrokenOff;
use crate::commands::{Earlier, Plan};
use crate::{CommandError, Commands, Done, Origin};

/// How much of a body counts, unpacked: all of most, and no more than a chunk holds anyway. What
/// follows is covered by the lines' own receipts.
const BYTES: usize = 1024 * 1024;
/// A pause of the body after which the client is assumed to wait for answers. A network or a busy
/// machine may pause for a while too, and an upload whose answer begins early has its last position
/// only at the end.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// How long a client that keeps sending a little waits for its first answer at most.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The digest of the beginning of a body: of all of it, if it is shorter.
struct Beginning {
    digest: Context,
    left: usize,
}

/// How a beginning arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Whole,
    /// Only a part of it: the client may be waiting for answers.
    Paused,
    NoRoom,
}

/// How long to wait for a beginning.
#[derive(Clone, Copy)]
enum Wait {
    /// Until then, or until the client pauses.
    Until(Instant),
    /// As long as the body keeps the pace that every body must keep.
    AsItComes,
}

/// Waits for the beginning of an upload with a key. Returns the origin with the receipt of the
/// upload; `None` if the client waits for answers before it sends that much. `lines` hold what came.
pub(super) async fn origin(
    sender: &Sender,
    lines: &mut Lines,
) -> Result<Option<Origin>, HttpError> {
    let mut beginning = Beginning::default();
    let wait = Wait::Until(Instant::now() + TIMEOUT);
    let mut arrival = beginning.receive(lines, wait).await?;
    // A repeat does not wait for answers either. A body that is no repeat must not get past the
    // claim by pausing.
    if arrival == Arrival::Paused && is_claimed(sender).await? {
        arrival = beginning.receive(lines, Wait::AsItComes).await?;
    }
    match arrival {
        Arrival::Whole => {
            let digest = beginning.digest();
            let origin = sender.repeatable.of_upload(&sender.caller, digest.as_ref());
            Ok(Some(origin))
        }
        Arrival::Paused => Ok(None),
        Arrival::NoRoom => Err(service::body::no_room()),
    }
}

/// Claims the key for an upload, unless an earlier request with the same beginning has claimed it.
/// Returns the position of the claim.
pub(super) async fn claim(
    commands: &Commands,
    origin: &Origin,
) -> Result<Position, CommandError<Infallible>> {
    // Each line is answered from its own receipt.
    let plan = || async {
        let position = commands.log().position(Log::Events, 0);
        Ok(Plan::Nothing {
            done: Done {
                answer: (),
                position,
            },
            holder: Some(String::new()),
        })
    };
    let claimed = commands.carry_out(origin, plan).await?;
    Ok(claimed.answered(drop).position)
}

/// Whether an upload with this key, or another command, has claimed it.
async fn is_claimed(sender: &Sender) -> Result<bool, HttpError> {
    let unknown = sender.repeatable.of_upload(&sender.caller, &[]);
    let earlier = sender.app.commands.earlier::<Infallible>(&unknown).await;
    match earlier {
        Ok(Earlier::None(_)) => Ok(false),
        Ok(Earlier::Repeat(_)) | Err(CommandError::OtherRequest) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl Default for Beginning {
    fn default() -> Self {
        Self {
            digest: Context::new(&SHA256),
            left: BYTES,
        }
    }
}

impl Beginning {
    /// Receives more of it, until it is complete or the wait is over.
    async fn receive(&mut self, lines: &mut Lines, wait: Wait) -> Result<Arrival, BrokenOff> {
        while self.left > 0 {
            match lines.receive(wait.timeout()).await? {
                Came::Piece(piece) => self.add(&piece),
                Came::End => break,
                Came::NothingInTime => return Ok(Arrival::Paused),
                Came::NoRoom => return Ok(Arrival::NoRoom),
            }
        }
        Ok(Arrival::Whole)
    }

    fn add(&mut self, piece: &[u8]) {
        let counted = &piece[..piece.len().min(self.left)];
        self.digest.update(counted);
        self.left -= counted.len();
    }

    fn digest(self) -> Digest {
        self.digest.finish()
    }
}

impl Wait {
    fn timeout(self) -> Option<Duration> {
        match self {
            Self::Until(end) => Some(PAUSE.min(end.saturating_duration_since(Instant::now()))),
            Self::AsItComes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use bytes::Bytes;
    use futures::{Stream, StreamExt as _, stream};

    use super::*;
    use crate::records::line_splitter::SplitBy;
    use crate::records::unpacked::{Coding, Unpacked};

    type Piece = Result<Bytes, std::io::Error>;

    fn lines(pieces: impl Stream<Item = Piece> + Send + 'static) -> Lines {
        let body = Body::from_stream(pieces).into_data_stream();
        let body = Unpacked::new(body, Coding::Identity).unwrap();
        Lines::new(body, SplitBy::Lines, None)
    }

    fn pieces(text: &[u8], size: usize) -> impl Stream<Item = Piece> + Send + use<> {
        let pieces: Vec<Piece> = text
            .chunks(size)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        stream::iter(pieces)
    }

    fn long_wait() -> Wait {
        Wait::Until(Instant::now() + TIMEOUT)
    }

    async fn digest(text: &[u8], size: usize) -> Vec<u8> {
        let mut beginning = Beginning::default();
        let mut lines = lines(pieces(text, size));
        let arrival = beginning.receive(&mut lines, long_wait()).await.unwrap();
        assert_eq!(arrival, Arrival::Whole);
        beginning.digest().as_ref().to_vec()
    }

    #[tokio::test]
    async fn a_beginning_is_the_same_however_it_was_cut() {
        let short = b"{\"id\": \"a\"}\n".repeat(50);
        let long = b"{\"id\": \"a\"}\n".repeat(200_000);
        for text in [&short, &long] {
            let whole = digest(text, text.len()).await;
            for size in [101, 1_000, 65_537, BYTES - 1, BYTES, BYTES + 1] {
                assert_eq!(digest(text, size).await, whole, "pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn what_follows_the_beginning_does_not_count() {
        let exact = vec![b'x'; BYTES];
        let with = |more: &[u8]| [&exact[..], more].concat();
        let counted = digest(&exact, 1_000).await;
        assert_eq!(digest(&with(b"y"), 1_000).await, counted);
        assert_eq!(digest(&with(b"z\nz"), BYTES + 3).await, counted);
        assert_ne!(digest(&exact[1..], 1_000).await, counted);
        let mut other = exact.clone();
        other[BYTES - 1] = b'y';
        assert_ne!(digest(&other, 1_000).await, counted);
    }

    #[tokio::test]
    async fn lines_are_kept_while_their_beginning_is_awaited() {
        let text = b"{}\n".repeat(1_500);
        let mut lines = lines(pieces(&text, 100));
        let mut beginning = Beginning::default();
        beginning.receive(&mut lines, long_wait()).await.unwrap();
        let first = lines.next_chunk(None).await.unwrap();
        let second = lines.next_chunk(None).await.unwrap();
        assert_eq!((first.lines.len(), second.lines.len()), (1_000, 500));
        assert!(second.ended);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beginning_is_awaited_only_while_it_comes() {
        let begun = Instant::now();
        let first = pieces(b"{}\n", 3);
        let mut lines = lines(first.chain(stream::pending()));
        let mut beginning = Beginning::default();
        let arrival = beginning.receive(&mut lines, long_wait()).await.unwrap();
        assert_eq!(arrival, Arrival::Paused);
        let awaited = begun.elapsed();
        assert!((PAUSE..PAUSE * 2).contains(&awaited), "{awaited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_keeps_sending_a_little_is_answered_at_last() {
        let begun = Instant::now();
        let drops = stream::unfold((), async |()| {
            tokio::time::sleep(PAUSE / 2).await;
            Some((Ok(Bytes::from_static(b"{}\n")), ()))
        });
        let mut lines = lines(drops);
        let mut beginning = Beginning::default();
        let arrival = beginning.receive(&mut lines, long_wait()).await.unwrap();
        assert_eq!(arrival, Arrival::Paused);
        let awaited = begun.elapsed();
        assert!((TIMEOUT..TIMEOUT + PAUSE).contains(&awaited), "{awaited:?}");
    }
}
