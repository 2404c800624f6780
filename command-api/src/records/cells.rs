//! The cells of a CSV's rows.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::line_splitter::{BYTE_ORDER_MARK, Quoting};

/// Splits rows into cells. Creating one costs as much as many rows, so it is used for a whole
/// chunk.
pub(super) struct Cells {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// The delimiter of a CSV, as its header row shows: a comma, or a semicolon or a tab, which some
/// spreadsheets write where the comma is for decimals. No field's name contains one of these.
/// `beginning` may extend past the header row.
pub fn delimiter_of(beginning: &[u8]) -> u8 {
    let unmarked = beginning.strip_prefix(BYTE_ORDER_MARK);
    let (mut commas, mut semicolons, mut tabs) = (0, 0, 0);
    let mut quoting = Quoting::default();
    for byte in unmarked.unwrap_or(beginning) {
        quoting.pass_byte(*byte);
        match byte {
            _ if quoting.is_quoted() => {}
            b',' => commas += 1,
            b';' => semicolons += 1,
            b'\t' => tabs += 1,
            b'\n' => break,
            _ => {}
        }
    }
    if commas >= semicolons.max(tabs) {
        b','
    } else if semicolons >= tabs {
        b';'
    } else {
        b'\t'
    }
}

impl Cells {
    pub(super) fn new(delimiter: u8) -> Self {
        Self {
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Returns the cells of one row, or an error for people if it is not one.
    pub(super) fn of(&mut self, row: &[u8]) -> Result<Vec<&str>, String> {
        // A row has at most one more cell than bytes. The text is shorter than that, so that there
        // is always some room left.
        let room = self.text.len().max(row.len() + 1);
        self.text.resize(room, 0);
        self.ends.resize(room, 0);
        self.reader.reset();
        let (text, ends) = (&mut self.text[..], &mut self.ends[..]);
        // The reader takes a byte-order mark off whatever it reads first, but this one may belong
        // to the row. So it first reads a line feed, which means nothing before a row.
        self.reader.read_record(b"\n", text, ends);
        let (result, taken, length, mut count) = self.reader.read_record(row, text, ends);
        if result == ReadRecordResult::InputEmpty {
            // End of input: the last cell is complete.
            let (text, ends) = (&mut text[length..], &mut ends[count..]);
            let (_, _, _, more) = self.reader.read_record(&[], text, ends);
            count += more;
        }
        if !row[taken..].trim_ascii().is_empty() {
            return Err("has a carriage return outside of quotation marks".to_owned());
        }
        let mut begin = 0;
        let cells = self.ends[..count].iter().map(|end| {
            let cell = &self.text[begin..*end];
            begin = *end;
            std::str::from_utf8(cell).map_err(|_| "is not valid UTF-8".to_owned())
        });
        cells.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn assert_cells(row: &str, expected: &[&str]) {
        let mut cells = Cells::new(b',');
        for _ in 0..2 {
            assert_eq!(cells.of(row.as_bytes()).unwrap(), expected, "{row:?}");
        }
    }

    #[test]
    fn quoted_cells_may_hold_what_ends_others() {
        assert_cells("a,b", &["a", "b"]);
        assert_cells(" a ,", &[" a ", ""]);
        assert_cells(",,", &["", "", ""]);
        assert_cells("a,b\r", &["a", "b"]);
        assert_cells("\"a,\"\"b\"\"\n\rc\",d", &["a,\"b\"\n\rc", "d"]);
        assert_cells("a,\"b", &["a", "b"]);
        assert_cells("é,ü", &["é", "ü"]);
        assert_cells("5\" pipe,\"a\"b\"", &["5\" pipe", "ab\""]);
    }

    #[test]
    fn the_header_row_determines_what_separates_cells() {
        let delimiter = |header: &str| char::from(delimiter_of(header.as_bytes()));
        for (header, expected) in [
            ("id", ','),
            ("", ','),
            ("id,email", ','),
            ("id;email\n1,2,3;4", ';'),
            ("id\temail\r\n", '\t'),
            ("id,\"a;b;c\",email", ','),
            ("\"a, b, c\";id", ';'),
            ("id;a,b", ','),
            ("Size 5\" pipe;Name;City", ';'),
            ("\u{feff}\"a,b,c\";id", ';'),
        ] {
            assert_eq!(delimiter(header), expected, "{header:?}");
        }
        let mut cells = Cells::new(b';');
        assert_eq!(cells.of(b"1,5;\"a;b\"").unwrap(), ["1,5", "a;b"]);
    }

    #[test]
    fn a_row_leaves_nothing_behind_for_the_next() {
        let mut cells = Cells::new(b',');
        assert_eq!(cells.of(b"one,two,\"three").unwrap().len(), 3);
        assert!(cells.of(b"one,\xff").is_err());
        assert_eq!(cells.of(b"1").unwrap(), ["1"]);
    }

    #[test]
    fn a_row_keeps_a_byte_order_mark_of_its_own() {
        assert_cells("\u{feff}a,b", &["\u{feff}a", "b"]);
        assert_cells("\u{feff}\"a,b", &["\u{feff}\"a", "b"]);
    }

    #[test]
    fn what_is_no_single_row_of_text_is_refused() {
        let mut cells = Cells::new(b',');
        // Cut in the middle of a character, though all cells together would be text.
        for row in [b"\xc3,\xa9".as_slice(), b"a\xff", b"a,b\rc,d"] {
            assert!(cells.of(row).is_err(), "{row:?}");
        }
    }

    proptest! {
        #[test]
        fn what_another_program_writes_is_read(rows in vec(vec("\\PC*|[\"\r\n, a]*", 1..5), 1..5)) {
            let mut cells = Cells::new(b',');
            for row in rows {
                let mut writer = csv::Writer::from_writer(Vec::new());
                writer.write_record(&row).unwrap();
                let line = writer.into_inner().unwrap();
                prop_assert_eq!(cells.of(line.strip_suffix(b"\n").unwrap()).unwrap(), row);
            }
        }
    }
}
