//! Which quotation marks of a CSV quote.

/// What some programs put before a text; it is no part of the first cell.
pub(in crate::records) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What ends cells while the header row is not known, which shows the one that does. No name in it
/// contains any of them.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Follows the text of a CSV and knows which parts of it are quoted, as the parser of rows does: a
/// quotation mark begins a quoted cell only at the cell's beginning, and is text in other cells;
/// in a quoted cell two of them are one that belongs to the text.
#[derive(Debug)]
pub(in crate::records) struct Quoting {
    /// What ends a cell.
    delimiters: [u8; 3],
    is_quoted: bool,
    /// Whether a quotation mark would quote what follows: at the beginning of a cell, and directly
    /// behind a quoted part, where it is the second of two.
    may_open: bool,
}

impl Default for Quoting {
    /// At the beginning of a text, behind its byte-order mark.
    fn default() -> Self {
        Self {
            delimiters: DELIMITERS,
            is_quoted: false,
            may_open: true,
        }
    }
}

impl Quoting {
    /// Whether it is not known yet which delimiter ends cells.
    pub(super) fn is_undecided(&self) -> bool {
        self.delimiters == DELIMITERS
    }

    /// From here on, only this delimiter ends cells.
    pub(super) fn decide(&mut self, delimiter: u8) {
        self.delimiters = [delimiter; 3];
    }

    /// Whether what follows is within a quoted cell.
    pub(in crate::records) fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    /// Goes on behind a part of the text.
    pub(super) fn pass(&mut self, part: &[u8]) {
        if part.contains(&b'"') {
            for byte in part {
                self.pass_byte(*byte);
            }
        } else if let Some(last) = part.last() {
            // Most rows have no quotation marks and are searched many bytes at a time.
            self.may_open = self.ends_cell(*last);
        }
    }

    /// Goes on behind one byte, without branches: text decides too irregularly which to take.
    #[inline]
    pub(in crate::records) fn pass_byte(&mut self, byte: u8) {
        let is_mark = byte == b'"';
        let counts = self.is_quoted | self.may_open;
        let closes = is_mark & self.is_quoted;
        let ends_cell = self.ends_cell(byte);
        self.is_quoted ^= is_mark & counts;
        // Within a quoted cell this may be wrong, and does not matter.
        self.may_open = closes | ends_cell;
    }

    /// Whether a cell ends with this byte if it is not quoted. A lone carriage return ends a row.
    #[inline]
    fn ends_cell(&self, byte: u8) -> bool {
        let [one, two, three] = self.delimiters;
        byte == one || byte == two || byte == three || byte == b'\r' || byte == b'\n'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks the bytes behind which a text is quoted.
    fn quoted(text: &str) -> String {
        let mut quoting = Quoting::default();
        quoting.decide(b',');
        let quoted = text.bytes().map(|byte| {
            quoting.pass_byte(byte);
            if quoting.is_quoted() { 'q' } else { '.' }
        });
        quoted.collect()
    }

    #[test]
    fn only_the_mark_at_a_cells_beginning_quotes() {
        for (text, expected) in [
            (r#"a"b","c""#, ".....qq."),
            (r#""a","b""#, "qq..qq."),
            (r#"a,"b""c",d"#, "..qq.qq..."),
            (r#""a"b"c,"#, "qq....."),
            (r#"a, "b""#, "......"),
            (r#"a;"b""#, "....."),
            (r#"""",""""#, "q.qq.q."),
            ("a\r\"b\n\"", "..qqq."),
            ("\"a,\r\n\"\n\"", "qqqqq..q"),
        ] {
            assert_eq!(quoted(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_part_is_passed_like_its_bytes() {
        for text in [
            "a,b", "a,", "", "\"a", "\"a,", "a\"", "a\r", "a;\"b", "\"a\"", "\"a\"\"",
        ] {
            let (mut whole, mut bytes) = (Quoting::default(), Quoting::default());
            for part in [text, "\"x", "y\"", "\""] {
                whole.pass(part.as_bytes());
                for byte in part.bytes() {
                    bytes.pass_byte(byte);
                }
                assert_eq!(whole.is_quoted, bytes.is_quoted, "{text} {part}");
            }
        }
    }
}
