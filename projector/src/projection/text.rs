//! Text from outside on its way into a column.

use std::borrow::Cow;

/// Postgres' text cannot hold U+0000; text from a receiver or a caller may. The replacement
/// character takes its place, so that one odd character does not cost the row.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for text that may be absent.
pub(super) fn optional(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(|text| storable(text))
}

/// A list of texts as one JSON text. To Postgres an array of arrays is a matrix, whose rows must be
/// equally long, so the lists of many rows are sent as JSON, which Postgres splits: [`storable`]
/// each.
pub(super) fn text_list(texts: &[String]) -> String {
    let texts: serde_json::Value = texts.iter().map(|text| storable(text)).collect();
    texts.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_postgres_takes_apart_has_no_nul() {
        let texts = ["run.*".to_owned(), "custom.a\0b".to_owned()];
        assert_eq!(text_list(&texts), "[\"run.*\",\"custom.a\u{fffd}b\"]");
    }
}
