use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::exports::CONTACTS;

/// Only the built-in fonts.
fn none() -> Arc<Fallbacks> {
    Arc::new(Fallbacks::new(Vec::new()))
}

pub(super) fn regular() -> Typeface {
    Typeface::new("R", REGULAR, &none()).unwrap()
}

fn pdf(rows: &[Vec<String>]) -> Vec<u8> {
    let title = Title {
        organization: "Łódź & Søn".to_owned(),
        at: DateTime::UNIX_EPOCH,
    };
    let mut writer = PdfWriter::new(&CONTACTS, title, &none(), Vec::new()).unwrap();
    for row in rows {
        let cells: Vec<Cell<'_>> = row.iter().map(|text| Cell::Text(text)).collect();
        writer.write_row(&cells).unwrap();
    }
    writer.finish().unwrap()
}

fn find(bytes: &[u8], text: &str) -> Vec<usize> {
    let places = bytes.windows(text.len()).enumerate();
    places
        .filter(|(_, window)| *window == text.as_bytes())
        .map(|(at, _)| at)
        .collect()
}

/// Returns the offset of each object in the table of objects.
fn table(bytes: &[u8]) -> Vec<usize> {
    let start = find(bytes, "\nxref\n").pop().unwrap() + 1;
    let text = std::str::from_utf8(&bytes[start..]).unwrap();
    let entries = text.lines().skip(3);
    entries
        .take_while(|line| line.ends_with(" n"))
        .map(|line| line[..10].parse().unwrap())
        .collect()
}

#[test]
fn the_table_of_objects_leads_to_every_object() {
    let row = vec!["Ада".to_owned(); CONTACTS.columns.len()];
    let bytes = pdf(&vec![row; 200]);
    let table = table(&bytes);
    assert!(table.len() > 20);
    for (offset, number) in table.iter().zip(1..) {
        let object = format!("{number} 0 obj");
        assert!(bytes[*offset..].starts_with(object.as_bytes()), "{object}");
    }
    let end = String::from_utf8_lossy(&bytes[bytes.len() - 40..]).into_owned();
    let start = find(&bytes, "\nxref\n").pop().unwrap() + 1;
    assert!(
        end.ends_with(&format!("startxref\n{start}\n%%EOF\n")),
        "{end}"
    );
}

#[test]
fn rows_go_over_as_many_pages_as_they_take() {
    let row = vec!["Ada".to_owned(); CONTACTS.columns.len()];
    let pages = |count: usize| find(&pdf(&vec![row.clone(); count]), "/Type /Page\n").len();
    assert_eq!(pages(0), 1);
    assert_eq!(pages(1), 1);
    assert!((20..30).contains(&pages(1_000)), "{}", pages(1_000));
    assert!(pages(5_000) > PAGES_PER_NODE);
}

#[test]
fn what_no_font_has_is_shown_as_a_box() {
    let typeface = &mut regular();
    let unknown = typeface.glyph('漢');
    assert_eq!((unknown.font, unknown.id), (0, 0));
    assert!(unknown.width > 0.3, "{unknown:?}");
    let glyphs = shaping::placed("a漢字", false, typeface);
    let ids: Vec<u16> = glyphs.iter().map(|placed| placed.glyph.id).collect();
    assert_eq!(ids[1..], [0, 0]);
}

#[test]
fn text_after_a_missing_glyph_box_is_placed_after_its_width() {
    let mut row = vec![String::new(); CONTACTS.columns.len()];
    row[0] = "漢 and more".to_owned();
    let width = regular().glyph('漢').width * 1_000.0;
    let widths = format!("/W [0 [{}", width.trunc());
    assert!(!find(&pdf(&[row]), &widths).is_empty(), "{widths}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_text_can_be_written(
        row in proptest::collection::vec("(?s).{0,200}", CONTACTS.columns.len()),
    ) {
        let bytes = pdf(&[row]);
        prop_assert!(bytes.ends_with(b"%%EOF\n"));
    }
}
