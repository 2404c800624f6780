//! Cuts a body that comes piece by piece into lines, a chunk of them at a time.

use std::time::Duration;

use axum::body::BodyDataStream;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

/// What one chunk holds at most: as much as one batch of the log takes.
const CHUNK_LINES: usize = 1_000;
const CHUNK_BYTES: usize = 1024 * 1024;
/// The longest line: more than any record needs, whatever the escapes.
const MAX_LINE: usize = 256 * 1024;
/// How long a chunk waits for more, once it has something.
const LINGER: Duration = Duration::from_millis(2);

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
}

/// The body broke off before its end.
#[derive(Debug, thiserror::Error)]
#[error("the request was interrupted: {0}")]
pub(super) struct BrokenOff(axum::Error);

/// Reads lines from a body, holding no more than a chunk and a piece.
pub(super) struct Lines {
    body: BodyDataStream,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line's end.
    searched: usize,
    /// Whether the rest of a line that is too long is being thrown away.
    skipping: bool,
    number: u64,
    /// Bytes that have come.
    received: u64,
    ended: bool,
}

impl Lines {
    pub(super) fn new(body: BodyDataStream) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            number: 0,
            received: 0,
            ended: false,
        }
    }

    /// How many bytes of the body have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The next chunk: what has come, once nothing more comes for a moment. It holds no line where
    /// nothing at all comes within `patience`, or where the body ends.
    pub(super) async fn next_chunk(
        &mut self,
        patience: Option<Duration>,
    ) -> Result<Chunk, BrokenOff> {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        loop {
            while chunk.lines.len() < CHUNK_LINES && bytes < CHUNK_BYTES {
                let Some(line) = self.cut_line() else { break };
                bytes += line.text.as_ref().map_or(0, Bytes::len);
                chunk.lines.push(line);
            }
            let full = chunk.lines.len() >= CHUNK_LINES || bytes >= CHUNK_BYTES;
            if full || self.ended {
                chunk.ended = self.ended && self.buffer.is_empty();
                return Ok(chunk);
            }
            let patience = if chunk.lines.is_empty() {
                patience
            } else {
                Some(LINGER)
            };
            if !self.receive(patience).await? {
                return Ok(chunk);
            }
        }
    }

    /// Takes the next piece in; `false` where none came in time.
    async fn receive(&mut self, patience: Option<Duration>) -> Result<bool, BrokenOff> {
        let next = self.body.next();
        let piece = match patience {
            None => next.await,
            Some(patience) => match tokio::time::timeout(patience, next).await {
                Ok(piece) => piece,
                Err(_) => return Ok(false),
            },
        };
        match piece {
            Some(piece) => {
                let piece = piece.map_err(BrokenOff)?;
                self.received += piece.len() as u64;
                self.buffer.extend_from_slice(&piece);
            }
            None => self.ended = true,
        }
        Ok(true)
    }

    /// Cuts the next line that is not blank off the buffer; `None` where it is not whole yet.
    fn cut_line(&mut self) -> Option<Line> {
        loop {
            let end = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n');
            let line = match end {
                Some(end) => {
                    let mut line = self.buffer.split_to(self.searched + end + 1);
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
    use futures::stream;

    use super::*;

    fn lines(pieces: Vec<Vec<u8>>) -> Lines {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        Lines::new(Body::from_stream(stream::iter(pieces)).into_data_stream())
    }

    async fn all(pieces: Vec<Vec<u8>>) -> Vec<(u64, Option<String>)> {
        let mut lines = lines(pieces);
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
        let mut lines = Lines::new(body.into_data_stream());
        let chunk = lines.next_chunk(None).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (1, false));
        let chunk = lines.next_chunk(Some(Duration::ZERO)).await.unwrap();
        assert_eq!((chunk.lines.len(), chunk.ended), (0, false));
    }
}
