//! Splits the received part of a body into lines.

use bytes::{Bytes, BytesMut};

/// The longest line: more than any record needs, whatever the escapes.
pub(super) const MAX_LINE: usize = 256 * 1024;

/// A line that is not blank; numbers count from 1 and count the blank ones too.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    /// `None` if the line is too long to be read.
    pub(super) text: Option<Bytes>,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every line feed.
    Lines,
    /// Every line feed outside a quoted cell.
    Rows,
}

/// Received bytes that are not split into lines yet.
pub(super) struct Cutter {
    cut: Cut,
    /// Whether what was searched ends within quotation marks.
    quoted: bool,
    buffer: BytesMut,
    /// How much of the buffer is known to contain no line end.
    searched: usize,
    /// Whether the rest of a line that is too long is being discarded.
    skipping: bool,
    number: u64,
    ended: bool,
}

impl Cutter {
    pub(super) fn new(cut: Cut) -> Self {
        Self {
            cut,
            quoted: false,
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            number: 0,
            ended: false,
        }
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Marks the end of the input: what is left is the last line.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number of bytes not split off yet.
    pub(super) fn left(&self) -> usize {
        self.buffer.len()
    }

    /// Splits the next line that is not blank off the buffer; `None` if it is not complete yet.
    pub(super) fn cut_line(&mut self) -> Option<Line> {
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

    /// Returns the end of the first line in the buffer.
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

    /// Keeps memory bounded if a line does not end.
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

    /// Removes the byte-order mark that some programs put before the first line.
    fn without_mark(&self, line: Bytes) -> Bytes {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.number == 1 && line.starts_with(MARK) {
            line.slice(MARK.len()..)
        } else {
            line
        }
    }
}
