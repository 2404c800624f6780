//! Places in a list, as clients carry them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

/// The place after an item of a list that is ordered newest first, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of the page that begins here.
    pub(crate) page: i64,
    /// When the item came to be.
    pub(crate) created_at: DateTime<Utc>,
    /// The item's id.
    pub(crate) id: String,
}

impl Cursor {
    /// The cursor as text that stands in an address as it is.
    pub(crate) fn encode(&self) -> String {
        let (page, at) = (self.page, self.created_at.timestamp_micros());
        URL_SAFE_NO_PAD.encode(format!("{page}/{at}/{}", self.id))
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.splitn(3, '/');
        let page = parts.next()?.parse().ok().filter(|page| *page > 0)?;
        let created_at = DateTime::from_timestamp_micros(parts.next()?.parse().ok()?)?;
        let id = parts.next()?;
        // Postgres takes texts without U+0000 only, and has no such id.
        (!id.contains('\0')).then(|| Self {
            page,
            created_at,
            id: id.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(
            page in 1..i64::MAX, at in 0..4_102_444_800_000_000_i64, id in "[^\0]{0,128}",
        ) {
            let created_at = DateTime::from_timestamp_micros(at).unwrap();
            let cursor = Cursor { page, created_at, id };
            prop_assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        }

        #[test]
        fn other_text_is_no_cursor(text in "\\PC{0,40}") {
            if let Some(cursor) = Cursor::decode(&text) {
                prop_assert_eq!(cursor.encode(), text);
            }
        }
    }
}
