//! Cuts a body that comes piece by piece into lines, a chunk of them at a time.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use service::{Full, Held};
use tokio::time::{Instant, sleep};

use super::unpacked::Unpacked;

/// What one chunk holds at most: as much as one batch of the log takes.
const CHUNK_LINES: usize = 1_000;
const CHUNK_BYTES: usize = 1024 * 1024;
/// The longest line: more than any record needs, whatever the escapes.
const MAX_LINE: usize = 256 * 1024;
/// How much comes without any line before whoever waits for one is told.
const LINELESS_BYTES: u64 = 4 * 1024 * 1024;
/// How long a chunk waits for more, once it has something.
const LINGER: Duration = Duration::from_millis(2);
/// How long the body waits where bodies hold all the memory that they may, and how often it asks.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
const ROOM_AGAIN: Duration = Duration::from_millis(50);

/// A line that is not blank; numbers count from 1 and count the blank ones too.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    /// `None` where the line is too long to be read.
    pub(super) text: Option<Bytes>,
}

/// Lines to be written together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) lines: Vec<Line>,
    /// Whether the body has ended.
    pub(super) ended: bool,
    /// Whether there is no memory for what follows.
    pub(super) no_room: bool,
    /// What its lines take of the memory that all bodies share.
    pub(super) room: Option<Held>,
}

/// What came of waiting for more of a body.
enum Came {
    Something,
    NothingInTime,
    NoRoom,
}

/// The body broke off before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    /// On its way.
    #[error("the request was interrupted: {0}")]
    Connection(#[from] axum::Error),
    /// It is not packed as its head says, or not whole.
    #[error("the body is not what its Content-Encoding says: {0}")]
    Packing(#[from] io::Error),
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every line feed.
    Lines,
    /// Every one that stands in no quoted cell.
    Rows,
}

/// Reads lines from a body, holding no more than a chunk and a piece.
pub(super) struct Lines {
    body: Unpacked,
    cut: Cut,
    /// Whether what was searched ends within quotation marks.
    quoted: bool,
    buffer: BytesMut,
    /// What the buffer and the lines of the next chunk take of the memory that all bodies share.
    room: Option<Held>,
    /// How much of the buffer is known to hold no line's end.
    searched: usize,
    /// Whether the rest of a line that is too long is being thrown away.
    skipping: bool,
    number: u64,
    /// Bytes that have come, unpacked.
    received: u64,
    ended: bool,
}

impl Lines {
    pub(super) fn new(body: Unpacked, cut: Cut, room: Option<Held>) -> Self {
        Self {
            body,
            cut,
            quoted: false,
            buffer: BytesMut::new(),
            room,
            searched: 0,
            skipping: false,
            number: 0,
            received: 0,
            ended: false,
        }
    }

    /// How many bytes of the body have come, unpacked.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The first line, however long it takes to come; `None` where there is none.
    pub(super) async fn first(&mut self) -> Result<Option<Line>, BrokenOff> {
        loop {
            let line = self.cut_line();
            if line.is_some() || self.ended || self.received > LINELESS_BYTES {
                return Ok(line);
            }
            if matches!(self.receive(None).await?, Came::NoRoom) {
                return Ok(None);
            }
        }
    }

    /// The next chunk: what has come, once nothing more comes for a moment. It holds no line where
    /// nothing at all comes within `patience`, or much without an end, or where the body ends.
    pub(super) async fn next_chunk(
        &mut self,
        patience: Option<Duration>,
    ) -> Result<Chunk, BrokenOff> {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        self.fill(&mut chunk, &mut bytes, patience).await?;
        let room = self.room.as_mut();
        chunk.room = room.map(|room| room.split_off(bytes));
        Ok(chunk)
    }

    async fn fill(
        &mut self,
        chunk: &mut Chunk,
        bytes: &mut usize,
        patience: Option<Duration>,
    ) -> Result<(), BrokenOff> {
        let before = self.received;
        loop {
            while chunk.lines.len() < CHUNK_LINES && *bytes < CHUNK_BYTES {
                let Some(line) = self.cut_line() else { break };
                *bytes += line.text.as_ref().map_or(0, Bytes::len);
                chunk.lines.push(line);
            }
            let full = chunk.lines.len() >= CHUNK_LINES
                || *bytes >= CHUNK_BYTES
                || self.received - before >= LINELESS_BYTES;
            if full || self.ended {
                chunk.ended = self.ended && self.buffer.is_empty();
                return Ok(());
            }
            let patience = if chunk.lines.is_empty() {
                patience
            } else {
                Some(LINGER)
            };
            self.keep_room(*bytes);
            match self.receive(patience).await? {
                Came::Something => {}
                Came::NothingInTime => return Ok(()),
                Came::NoRoom => {
                    chunk.no_room = true;
                    return Ok(());
                }
            }
        }
    }

    /// Gives back what is not taken by the buffer and a chunk's lines of so many bytes.
    fn keep_room(&mut self, bytes: usize) {
        let held = self.buffer.len() + bytes;
        if let Some(room) = &mut self.room {
            room.shrink_to(held);
        }
    }

    /// Takes room for a piece, as soon as there is any.
    async fn take_room(&mut self, bytes: usize) -> Result<(), Full> {
        let Some(room) = &mut self.room else {
            return Ok(());
        };
        let until = Instant::now() + ROOM_PATIENCE;
        while !room.can_grow(bytes) && Instant::now() < until {
            sleep(ROOM_AGAIN).await;
        }
        room.grow(bytes)
    }

    /// Takes the next piece in.
    async fn receive(&mut self, patience: Option<Duration>) -> Result<Came, BrokenOff> {
        let next = self.body.next();
        let piece = match patience {
            None => next.await,
            Some(patience) => match tokio::time::timeout(patience, next).await {
                Ok(piece) => piece,
                Err(_) => return Ok(Came::NothingInTime),
            },
        };
        match piece {
            Some(piece) => {
                let piece = piece?;
                if self.take_room(piece.len()).await.is_err() {
                    return Ok(Came::NoRoom);
                }
                self.received += piece.len() as u64;
                self.buffer.extend_from_slice(&piece);
            }
            None => self.ended = true,
        }
        Ok(Came::Something)
    }

    /// Cuts the next line that is not blank off the buffer; `None` where it is not whole yet.
    fn cut_line(&mut self) -> Option<Line> {
        loop {
            let line = match self.line_end() {
                Some(end) => {
                    let mut line = self.buffer.split_to(end + 1);
                    line.truncate(line.len() - 1);
                    line
                }
                None if self.ended && (self.skipping || !self.buffer.is_empty()) => {
                    self.buffer.split()
                }
                None => {
                    self.searched = self.buffer.len();
                    self.shed_long_line();
                    return None;
                }
            };
            self.searched = 0;
            self.number += 1;
            let too_long = std::mem::take(&mut self.skipping) || line.len() > MAX_LINE;
            if too_long || !Self::is_blank(&line) {
                let text = (!too_long).then(|| self.without_mark(line.freeze()));
                let number = self.number;
                return Some(Line { number, text });
            }
        }
    }

    /// Where the first line in the buffer ends.
    fn line_end(&mut self) -> Option<usize> {
        let mut rest = self.buffer[self.searched..].iter();
        let end = match self.cut {
            Cut::Lines => rest.position(|byte| *byte == b'\n'),
            Cut::Rows => rest.position(|byte| {
                self.quoted ^= *byte == b'"';
                *byte == b'\n' && !self.quoted
            }),
        };
        end.map(|end| self.searched + end)
    }

    /// Keeps memory flat under a line that does not end.
    fn shed_long_line(&mut self) {
        if self.skipping || self.buffer.len() > MAX_LINE {
            self.skipping = true;
            self.buffer.clear();
            self.searched = 0;
        }
    }

    fn is_blank(line: &[u8]) -> bool {
        line.trim_ascii().is_empty()
    }

    /// The byte-order mark that some programs put before the first line is no part of it.
    fn without_mark(&self, line: Bytes) -> Bytes {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.number == 1 && line.starts_with(MARK) {
            line.slice(MARK.len()..)
        } else {
            line
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::{StreamExt as _, stream};

    use super::*;
    use crate::records::unpacked::Coding;

    fn of(body: Body, cut: Cut) -> Lines {
        let body = Unpacked::new(body.into_data_stream(), Coding::Identity);
        Lines::new(body.unwrap(), cut, None)
    }

    fn body(pieces: Vec<Vec<u8>>) -> Body {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        Body::from_stream(stream::iter(pieces))
    }

    fn lines(pieces: Vec<Vec<u8>>) -> Lines {
        of(body(pieces), Cut::Lines)
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
            let rows = all_of(of(body(pieces), Cut::Rows)).await;
            assert_eq!(rows, expected, "pieces of {cut}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_told_of_and_not_kept() {
        let mut lines = lines(vec![vec![b'x'; 64 * 1024]; 200]);
        let chunk = lines.next_chunk(None).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (0, false));
        assert!(lines.received() < 200 * 64 * 1024);
        assert!(lines.buffer.len() <= MAX_LINE);
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
        let mut lines = of(body, Cut::Lines);
        let chunk = lines.next_chunk(None).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (1, false));
        let chunk = lines.next_chunk(Some(Duration::ZERO)).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (0, false));
    }
}
