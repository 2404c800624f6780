//! Parts of addresses.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Encodes any text as a part of an address: one segment of a path, or one value of a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
