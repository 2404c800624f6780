//! Reads a body that arrives piece by piece as lines, a chunk of them at a time.

use std::time::Duration;

use bytes::Bytes;
use service::{Full, Held};
use tokio::time::{Instant, sleep};

use super::line_splitter::{Line, LineSplitter, SplitBy};
use super::unpacked::{BrokenOff, Unpacked};

/// The most that one chunk holds: as much as one batch of the log takes.
const CHUNK_LINES: usize = 1_000;
const CHUNK_BYTES: usize = 1024 * 1024;
/// How much arrives without any line before a waiting caller is informed.
const LINELESS_BYTES: u64 = 4 * 1024 * 1024;
/// How long a chunk waits for more, once it has something.
const LINGER: Duration = Duration::from_millis(2);
/// How long the body waits while bodies hold all the memory that they may, and how often it
/// retries.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);
const ROOM_AGAIN: Duration = Duration::from_millis(50);

/// Lines to be written together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) lines: Vec<Line>,
    /// Whether the body has ended.
    pub(super) ended: bool,
    /// Whether there is no memory for what follows.
    pub(super) no_room: bool,
    /// Memory that its lines hold, out of what all bodies share.
    pub(super) room: Option<Held>,
}

/// The outcome of waiting for more of a body.
pub(super) enum Came {
    /// A piece, which is now among what is to be cut.
    Piece(Bytes),
    /// The end.
    End,
    NothingInTime,
    NoRoom,
}

/// Reads lines from a body, holding no more than a chunk and a piece.
pub(super) struct Lines {
    body: Unpacked,
    splitter: LineSplitter,
    /// Memory that the splitter and the lines of the next chunk hold, out of what all bodies share.
    room: Option<Held>,
    /// Bytes received, decompressed.
    received: u64,
}

impl Lines {
    pub(super) fn new(body: Unpacked, split_by: SplitBy, room: Option<Held>) -> Self {
        Self {
            body,
            splitter: LineSplitter::new(split_by),
            room,
            received: 0,
        }
    }

    /// The number of bytes of the body received so far, decompressed.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the first line, however long it takes to arrive; `None` if there is none.
    pub(super) async fn first(&mut self) -> Result<Option<Line>, BrokenOff> {
        loop {
            let line = self.splitter.next_line();
            if line.is_some() || self.splitter.has_ended() || self.received > LINELESS_BYTES {
                return Ok(line);
            }
            if matches!(self.receive(None).await?, Came::NoRoom) {
                return Err(Full.into());
            }
        }
    }

    /// Returns the next chunk: what has arrived, once nothing more arrives for a moment. It has no
    /// lines if nothing at all arrives within `timeout`, or much without a line end, or if the
    /// body ends.
    pub(super) async fn next_chunk(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Chunk, BrokenOff> {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        self.fill(&mut chunk, &mut bytes, timeout).await?;
        let room = self.room.as_mut();
        chunk.room = room.map(|room| room.split_off(bytes));
        Ok(chunk)
    }

    async fn fill(
        &mut self,
        chunk: &mut Chunk,
        bytes: &mut usize,
        timeout: Option<Duration>,
    ) -> Result<(), BrokenOff> {
        let before = self.received;
        loop {
            while chunk.lines.len() < CHUNK_LINES && *bytes < CHUNK_BYTES {
                let Some(line) = self.splitter.next_line() else {
                    break;
                };
                *bytes += line.text.as_ref().map_or(0, Bytes::len);
                chunk.lines.push(line);
            }
            let full = chunk.lines.len() >= CHUNK_LINES
                || *bytes >= CHUNK_BYTES
                || self.received - before >= LINELESS_BYTES;
            if full || self.splitter.has_ended() {
                chunk.ended = self.splitter.has_ended() && self.splitter.left() == 0;
                return Ok(());
            }
            let timeout = if chunk.lines.is_empty() {
                timeout
            } else {
                Some(LINGER)
            };
            self.keep_room(*bytes);
            match self.receive(timeout).await? {
                Came::Piece(_) | Came::End => {}
                Came::NothingInTime => return Ok(()),
                Came::NoRoom => {
                    chunk.no_room = true;
                    return Ok(());
                }
            }
        }
    }

    /// Releases memory not held by the splitter and a chunk's lines of `bytes`.
    fn keep_room(&mut self, bytes: usize) {
        let held = self.splitter.left() + bytes;
        if let Some(room) = &mut self.room {
            room.shrink_to(held);
        }
    }

    /// Reserves memory for a piece, as soon as there is any.
    async fn take_room(&mut self, bytes: usize) -> Result<(), Full> {
        let Some(room) = &mut self.room else {
            return Ok(());
        };
        let until = Instant::now() + ROOM_TIMEOUT;
        while !room.can_grow(bytes) && Instant::now() < until {
            sleep(ROOM_AGAIN).await;
        }
        room.grow(bytes)
    }

    /// Receives the next piece.
    pub(super) async fn receive(&mut self, timeout: Option<Duration>) -> Result<Came, BrokenOff> {
        let next = self.body.next();
        let piece = match timeout {
            None => next.await,
            Some(timeout) => match tokio::time::timeout(timeout, next).await {
                Ok(piece) => piece,
                Err(_) => return Ok(Came::NothingInTime),
            },
        };
        let piece = match piece {
            Some(Ok(piece)) => piece,
            Some(Err(BrokenOff::NoRoom(_))) => return Ok(Came::NoRoom),
            Some(Err(error)) => return Err(error),
            None => {
                self.splitter.end();
                return Ok(Came::End);
            }
        };
        if self.take_room(piece.len()).await.is_err() {
            return Ok(Came::NoRoom);
        }
        self.received += piece.len() as u64;
        self.splitter.add(&piece);
        Ok(Came::Piece(piece))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::{StreamExt as _, stream};

    use super::*;
    use crate::records::line_splitter::MAX_LINE;
    use crate::records::unpacked::Coding;

    fn of(body: Body, split_by: SplitBy) -> Lines {
        let body = Unpacked::new(body.into_data_stream(), Coding::Identity);
        Lines::new(body.unwrap(), split_by, None)
    }

    fn body(pieces: Vec<Vec<u8>>) -> Body {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        Body::from_stream(stream::iter(pieces))
    }

    fn lines(pieces: Vec<Vec<u8>>) -> Lines {
        of(body(pieces), SplitBy::Lines)
    }

    async fn all(pieces: Vec<Vec<u8>>) -> Vec<(u64, Option<String>)> {
        all_of(lines(pieces)).await
    }

    async fn all_of(mut lines: Lines) -> Vec<(u64, Option<String>)> {
        let mut found = Vec::new();
        loop {
            let chunk = lines.next_chunk(None).await.unwrap();
            found.extend(chunk.lines.into_iter().map(|line| {
                let text = line
                    .text
                    .map(|text| String::from_utf8_lossy(&text).into_owned());
                (line.number, text)
            }));
            if chunk.ended {
                return found;
            }
        }
    }

    #[tokio::test]
    async fn lines_are_whole_however_the_pieces_were_cut() {
        let body = "\u{feff}one\r\n\n  \ntwo\nthree";
        let expected = [
            (1, Some("one\r".to_owned())),
            (4, Some("two".to_owned())),
            (5, Some("three".to_owned())),
        ];
        for cut in 1..=body.len() {
            let pieces = body.as_bytes().chunks(cut).map(<[u8]>::to_vec).collect();
            assert_eq!(all(pieces).await, expected, "pieces of {cut}");
        }
        assert_eq!(all(Vec::new()).await, []);
    }

    #[tokio::test]
    async fn a_row_goes_on_within_quotation_marks() {
        let text = "id,name\r\na,\"Two\n\nlines, \"\"quoted\"\"\"\r\n\r\nb,plain\n\"c\n";
        let expected = [
            (1, Some("id,name\r".to_owned())),
            (2, Some("a,\"Two\n\nlines, \"\"quoted\"\"\"\r".to_owned())),
            (4, Some("b,plain".to_owned())),
            (5, Some("\"c\n".to_owned())),
        ];
        for cut in 1..=text.len() {
            let pieces = text.as_bytes().chunks(cut).map(<[u8]>::to_vec).collect();
            let rows = all_of(of(body(pieces), SplitBy::Rows)).await;
            assert_eq!(rows, expected, "pieces of {cut}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_yields_a_chunk_without_lines_and_is_not_kept() {
        let mut lines = lines(vec![vec![b'x'; 64 * 1024]; 200]);
        let chunk = lines.next_chunk(None).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (0, false));
        assert!(lines.received() < 200 * 64 * 1024);
        assert!(lines.splitter.left() <= MAX_LINE);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over() {
        let long = vec![b'x'; 100 * 1024];
        let pieces = vec![
            b"one\n".to_vec(),
            long.clone(),
            long.clone(),
            long.clone(),
            b"x\ntwo\n".to_vec(),
            long.clone(),
            long.clone(),
            long,
        ];
        let expected = [
            (1, Some("one".to_owned())),
            (2, None),
            (3, Some("two".to_owned())),
            (4, None),
        ];
        assert_eq!(all(pieces).await, expected);
    }

    #[tokio::test]
    async fn a_chunk_has_at_most_a_thousand_lines() {
        let mut lines = lines(vec![b"{}\n".repeat(2_500)]);
        let mut sizes = Vec::new();
        loop {
            let chunk = lines.next_chunk(None).await.unwrap();
            sizes.push(chunk.lines.len());
            if chunk.ended {
                break;
            }
        }
        assert_eq!(sizes[..3], [1_000, 1_000, 500]);
    }

    #[tokio::test]
    async fn what_has_come_is_not_held_back() {
        let first = stream::iter([Ok::<_, std::io::Error>(b"one\n".to_vec())]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let mut lines = of(body, SplitBy::Lines);
        let chunk = lines.next_chunk(None).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (1, false));
        let chunk = lines.next_chunk(Some(Duration::ZERO)).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (0, false));
    }
}
