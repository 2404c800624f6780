//! Places in a list, as clients carry them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

/// What a list is ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    Created,
    Name,
    Amount,
    Grouped(Grouping),
}

/// A field by which a list is ordered in groups: items of the same value stand together, newest
/// first. The other way round, all of that order is turned round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Grouping {
    Email,
    Number,
    City,
    Owner,
    State,
}

/// What an item of a list is ordered by, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// When the item came to be.
    Created(DateTime<Utc>),
    /// The beginning of its name, as lists compare it.
    Name(String),
    Amount(i64),
    /// The beginning of its value, as lists compare it, and when the item came to be.
    Grouped(Grouping, String, DateTime<Utc>),
}

/// The place after an item of a list that is ordered by something, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of the page that begins here.
    pub(crate) page: i64,
    /// What the item is ordered by.
    pub(crate) sort_key: SortKey,
    /// The item's id.
    pub(crate) id: String,
}

impl SortKey {
    /// What the list is ordered by that has this key.
    pub(crate) fn sorted(&self) -> Sorted {
        match self {
            Self::Created(_) => Sorted::Created,
            Self::Name(_) => Sorted::Name,
            Self::Amount(_) => Sorted::Amount,
            Self::Grouped(grouping, ..) => Sorted::Grouped(*grouping),
        }
    }
}

impl Grouping {
    /// What cursors call each.
    const LETTERS: [(&str, Self); 5] = [
        ("e", Self::Email),
        ("o", Self::Number),
        ("c", Self::City),
        ("w", Self::Owner),
        ("s", Self::State),
    ];

    fn letter(self) -> &'static str {
        let mut letters = Self::LETTERS.into_iter();
        letters
            .find(|(_, of)| *of == self)
            .map_or("", |(letter, _)| letter)
    }

    fn of_letter(letter: &str) -> Option<Self> {
        let mut letters = Self::LETTERS.into_iter();
        letters.find(|(its, _)| *its == letter).map(|(_, of)| of)
    }
}

impl Cursor {
    /// The cursor as text that stands in an address as it is.
    pub(crate) fn encode(&self) -> String {
        let (page, id) = (self.page, &self.id);
        URL_SAFE_NO_PAD.encode(match &self.sort_key {
            SortKey::Created(at) => format!("{page}/{}/{id}", at.timestamp_micros()),
            SortKey::Amount(amount) => format!("{page}/a{amount}/{id}"),
            // Both may hold anything, so that the first says how long it is.
            SortKey::Name(name) => format!("{page}/n{}/{name}{id}", name.len()),
            SortKey::Grouped(grouping, value, at) => format!(
                "{page}/{}{}/{}/{value}{id}",
                grouping.letter(),
                at.timestamp_micros(),
                value.len()
            ),
        })
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        // Postgres takes texts without U+0000 only, and has none with it.
        let mut parts = text.splitn(3, '/').filter(|_| !text.contains('\0'));
        let page = parts.next()?.parse().ok().filter(|page| *page > 0)?;
        let (told_key, rest) = (parts.next()?, parts.next()?);
        let (letter, told) = told_key.split_at_checked(1)?;
        let (sort_key, id) = match letter {
            "a" => (SortKey::Amount(told.parse().ok()?), rest),
            "n" => {
                let (name, id) = rest.split_at_checked(told.parse().ok()?)?;
                (SortKey::Name(name.to_owned()), id)
            }
            _ => match Grouping::of_letter(letter) {
                Some(grouping) => {
                    let (length, rest) = rest.split_once('/')?;
                    let (value, id) = rest.split_at_checked(length.parse().ok()?)?;
                    (
                        SortKey::Grouped(grouping, value.to_owned(), time(told)?),
                        id,
                    )
                }
                None => (SortKey::Created(time(told_key)?), rest),
            },
        };
        let id = id.to_owned();
        Some(Self { page, sort_key, id })
    }
}

fn time(micros: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sort_keys() -> impl Strategy<Value = SortKey> {
        let times = || {
            let times = 0..4_102_444_800_000_000_i64;
            times.prop_map(|at| DateTime::from_timestamp_micros(at).unwrap())
        };
        let groupings = prop::sample::select(Grouping::LETTERS.map(|(_, of)| of).to_vec());
        prop_oneof![
            times().prop_map(SortKey::Created),
            (groupings, "[^\0]{0,100}", times())
                .prop_map(|(of, value, at)| SortKey::Grouped(of, value, at)),
            "[^\0]{0,100}".prop_map(SortKey::Name),
            any::<i64>().prop_map(SortKey::Amount),
        ]
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(
            page in 1..i64::MAX, sort_key in sort_keys(), id in "[^\0]{0,128}",
        ) {
            let cursor = Cursor { page, sort_key, id };
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
