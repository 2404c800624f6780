//! Text from outside on its way into a column.

use std::borrow::Cow;

/// Postgres' text cannot hold U+0000; what a receiver or a caller sent may. The sign that stands
/// for unreadable characters takes its place, so that one odd character does not cost the row.
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

/// A list of texts as one JSON text. An array of arrays is a matrix to Postgres, whose rows must
/// be equally long, so that the lists of many rows have to travel in another form.
pub(super) fn text_list(texts: &[String]) -> String {
    serde_json::Value::from(texts).to_string()
}
