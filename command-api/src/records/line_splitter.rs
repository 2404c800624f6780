//! Splits the received part of a body into lines.

mod quoting;

use std::io::BufRead as _;

use bytes::{Buf as _, Bytes, BytesMut};

pub(super) use self::quoting::{BYTE_ORDER_MARK, Quoting};
use super::cells::delimiter_of;

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
pub(super) enum SplitBy {
    /// Every line feed.
    Lines,
    /// Every line feed outside a quoted cell.
    Rows,
}

/// Received bytes that are not split into lines yet.
pub(super) struct LineSplitter {
    /// What is quoted where the searched part ends; `None` if quotation marks mean nothing.
    quoting: Option<Quoting>,
    buffer: BytesMut,
    /// How much of the buffer is known to contain no line end.
    searched: usize,
    /// Whether the rest of a line that is too long is being discarded.
    skipping: bool,
    number: u64,
    /// Whether what may precede the first line is out of the way.
    begun: bool,
    ended: bool,
}

impl LineSplitter {
    pub(super) fn new(split_by: SplitBy) -> Self {
        Self {
            quoting: (split_by == SplitBy::Rows).then(Quoting::default),
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            number: 0,
            begun: false,
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
    pub(super) fn next_line(&mut self) -> Option<Line> {
        if !self.begin() {
            return None;
        }
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
                let text = (!too_long).then(|| line.freeze());
                self.learn_delimiter(text.as_deref());
                let number = self.number;
                return Some(Line { number, text });
            }
        }
    }

    /// Removes the byte-order mark that some programs put before the first line. Returns whether
    /// enough has arrived to tell whether there is one.
    fn begin(&mut self) -> bool {
        if !self.begun {
            let is_part = self.buffer.len() < BYTE_ORDER_MARK.len();
            if is_part && !self.ended && BYTE_ORDER_MARK.starts_with(&self.buffer) {
                return false;
            }
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.advance(BYTE_ORDER_MARK.len());
            }
            self.begun = true;
        }
        true
    }

    /// Returns the end of the first line in the buffer.
    fn line_end(&mut self) -> Option<usize> {
        let mut begin = self.searched;
        loop {
            let rest = &self.buffer[begin..];
            let found = line_feed(rest);
            let Some(quoting) = &mut self.quoting else {
                return found.map(|end| begin + end);
            };
            quoting.pass(&rest[..found.unwrap_or(rest.len())]);
            let end = begin + found?;
            quoting.pass_byte(b'\n');
            if !quoting.is_quoted() {
                return Some(end);
            }
            begin = end + 1;
        }
    }

    /// The first row of a CSV shows what ends its cells.
    fn learn_delimiter(&mut self, row: Option<&[u8]>) {
        if let (Some(quoting), Some(row)) = (&mut self.quoting, row)
            && quoting.is_undecided()
        {
            quoting.decide(delimiter_of(row));
        }
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
}

/// The place of the first line feed, searched for many bytes at a time.
fn line_feed(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    // Reading from memory does not fail.
    let last = rest.skip_until(b'\n').ok()?.checked_sub(1)?;
    (bytes[last] == b'\n').then_some(last)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::records::cells::Cells;

    /// The rows of a text that arrives in pieces of `size` bytes.
    fn rows(text: &str, size: usize) -> Vec<Bytes> {
        let mut splitter = LineSplitter::new(SplitBy::Rows);
        let mut rows = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            splitter.add(piece);
            rows.extend(iter::from_fn(|| splitter.next_line()));
        }
        splitter.end();
        rows.extend(iter::from_fn(|| splitter.next_line()));
        rows.into_iter().filter_map(|row| row.text).collect()
    }

    /// The records that have any text, as another parser reads them.
    fn records(text: &[u8], delimiter: u8) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.has_headers(false).flexible(true);
        let reader = reader.delimiter(delimiter).from_reader(text);
        let records = reader.into_records().map(|record| {
            let record = record.unwrap();
            record.iter().map(str::to_owned).collect::<Vec<_>>()
        });
        records.filter(|record| has_text(record)).collect()
    }

    fn has_text(record: &[String]) -> bool {
        record.iter().any(|cell| !cell.trim_ascii().is_empty())
    }

    /// The records of a text that is cut first.
    fn records_of_rows(text: &str, size: usize) -> Vec<Vec<String>> {
        let rows = rows(text, size);
        let delimiter = rows.first().map_or(b',', |header| delimiter_of(header));
        let mut cells = Cells::new(delimiter);
        let mut found: Vec<Vec<String>> = Vec::new();
        for row in rows {
            match cells.of(&row) {
                Ok(cells) => found.push(cells.into_iter().map(str::to_owned).collect()),
                // Refused: a carriage return alone ends a row too.
                Err(_) => found.extend(records(&row, delimiter)),
            }
        }
        found.retain(|record| has_text(record));
        found
    }

    fn assert_rows(text: &str, expected: &[&str]) {
        for size in 1..=text.len() {
            assert_eq!(rows(text, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_quotation_mark_within_a_cell_is_text() {
        assert_rows(
            "id,name,city\na,5\" pipe,x\nb,ok,y\n",
            &["id,name,city", "a,5\" pipe,x", "b,ok,y"],
        );
        assert_rows(
            "id,name,city\na,5\" pipe,\"x\ny\"\nb,,\n",
            &["id,name,city", "a,5\" pipe,\"x\ny\"", "b,,"],
        );
    }

    #[test]
    fn quoted_cells_begin_behind_the_delimiter_of_the_header_row() {
        assert_rows(
            "id;name\na;\"x\ny\"\nb,\"c;\"d\n\"",
            &["id;name", "a;\"x\ny\"", "b,\"c;\"d\n\""],
        );
        assert_rows("id,name\na;\"x\ny", &["id,name", "a;\"x", "y"]);
        assert_rows(
            "\"id\"\t\"name\"\na\t\"\n\"",
            &["\"id\"\t\"name\"", "a\t\"\n\""],
        );
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_cell() {
        assert_rows("\u{feff}\"id\"\na\n", &["\"id\"", "a"]);
        assert_rows("\u{feff}\r\nid\n", &["id"]);
        assert_rows("id\n\u{feff}\"a\nb", &["id", "\u{feff}\"a", "b"]);
        for text in ["", "\u{feff}"] {
            assert_eq!(rows(text, 1), [""; 0]);
        }
    }

    /// Any text, or much of what means something to a parser.
    const CELL: &str = "\\PC{0,3}|(\r\n|[\"\n,;\t aé\u{feff}]){0,8}";

    /// Rows as another program writes them, and lines as nobody should.
    fn body(delimiter: u8, rows: &[(bool, Vec<String>)]) -> String {
        let mut body = String::new();
        for (is_written, cells) in rows {
            if *is_written {
                let mut writer = csv::WriterBuilder::new();
                let mut writer = writer.delimiter(delimiter).from_writer(Vec::new());
                writer.write_record(cells).unwrap();
                body += &String::from_utf8(writer.into_inner().unwrap()).unwrap();
            } else {
                body += &cells.concat();
                body.push('\n');
            }
        }
        body
    }

    fn with_header(mark: bool, delimiter: u8, body: &str) -> String {
        let mark = if mark { "\u{feff}" } else { "" };
        format!("{mark}\"id\"{0}name\r\n{body}", char::from(delimiter))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn rows_are_what_another_parser_reads_however_they_are_cut(
            mark in any::<bool>(),
            delimiter in select(vec![b',', b';', b'\t']),
            rows in vec((any::<bool>(), vec(CELL, 1..5)), 0..6),
            size in 1_usize..20,
        ) {
            let text = with_header(mark, delimiter, &body(delimiter, &rows));
            let expected = records(text.as_bytes(), delimiter);
            prop_assert_eq!(records_of_rows(&text, size), expected, "{:?}", text);
        }

        #[test]
        fn rows_end_where_another_parser_ends_them_whatever_ends_lines(
            delimiter in select(vec![b',', b';', b'\t']),
            body in "[\"\r\n,; a]{0,40}",
            size in 1_usize..20,
        ) {
            let text = with_header(false, delimiter, &body);
            let expected = records(text.as_bytes(), delimiter);
            prop_assert_eq!(records_of_rows(&text, size), expected, "{:?}", text);
        }
    }
}
