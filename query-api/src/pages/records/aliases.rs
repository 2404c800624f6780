//! The names of records' fields in other systems' exports.

use super::kinds::{KINDS, Look};

/// The fields of every kind.
const COMMON: [(&str, &str); 2] = [
    ("id", "record id|id"),
    (
        "createdAt",
        "create date|created date|createddate|created at",
    ),
];

/// Returns the field of a kind, such as `contacts`, that a column of another system's export
/// corresponds to. Amounts and shares are excluded: every system counts them in its own units.
pub fn field_of_column(kind: &str, column: &str) -> Option<&'static str> {
    let kind = KINDS.iter().find(|known| known.list.table == kind)?;
    let own = kind.fields.iter();
    let own = own.filter(|field| !matches!(field.look, Look::Money | Look::Percent));
    let fields = COMMON.into_iter();
    let mut fields = fields.chain(own.map(|field| (field.name, field.aliases)));
    let column = plain(column);
    let found = fields.find(|(name, aliases)| {
        let mut names = std::iter::once(*name).chain(aliases.split('|'));
        names.any(|name| plain(name) == column)
    });
    found.map(|(name, _)| name)
}

/// Reduces a name to its letters and digits.
fn plain(name: &str) -> String {
    let characters = name.chars().filter(|c| c.is_alphanumeric());
    characters.flat_map(char::to_lowercase).collect()
}
