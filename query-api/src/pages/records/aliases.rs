//! What other systems call the fields of records in their exports.

use super::kinds::{KINDS, Look};

/// What every kind has.
const COMMON: [(&str, &str); 2] = [
    ("id", "record id|id"),
    (
        "createdAt",
        "create date|created date|createddate|created at",
    ),
];

/// The field of a kind, such as `contacts`, that a column of another system's export speaks for.
/// Amounts and shares are not among them: every system counts these in units of its own.
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

/// A name by its letters and digits alone.
fn plain(name: &str) -> String {
    let characters = name.chars().filter(|c| c.is_alphanumeric());
    characters.flat_map(char::to_lowercase).collect()
}
