//! Positions in a list, as encoded for clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

/// The earliest time that Postgres stores, in microseconds since 1970: the beginning of 4713 BC. Its
/// latest is after any that can be parsed.
const EARLIEST: i64 = -210_866_803_200_000_000;

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    Created,
    Name,
    Amount,
    Grouped(Grouping),
}

/// A field by which a list is ordered in groups: items of the same value are adjacent, newest
/// first. Descending order reverses all of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Grouping {
    Email,
    Number,
    City,
    Owner,
    State,
}

/// The sort key of an item of a list, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// The creation time of the item.
    Created(DateTime<Utc>),
    /// The beginning of its name, as compared by lists.
    Name(String),
    Amount(i64),
    /// The beginning of its value, as compared by lists, and the creation time of the item.
    Grouped(Grouping, String, DateTime<Utc>),
}

/// The position after an item of a list that is ordered by a key, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of the page that begins here.
    pub(crate) page: i64,
    /// The sort key of the item.
    pub(crate) sort_key: SortKey,
    /// The item's id.
    pub(crate) id: String,
}

impl SortKey {
    /// Returns the key of an item of a list that is ordered by name, if there is the beginning of
    /// one, or by time.
    pub(crate) fn of(name: Option<&str>, created_at: DateTime<Utc>) -> Self {
        match name {
            Some(name) => Self::Name(name.to_owned()),
            None => Self::Created(created_at),
        }
    }

    /// Returns the order of the list that has this key.
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
    /// The letter of each in cursors.
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
    /// Encodes the cursor as text that needs no escaping in an address.
    pub(crate) fn encode(&self) -> String {
        let (page, id) = (self.page, &self.id);
        URL_SAFE_NO_PAD.encode(match &self.sort_key {
            SortKey::Created(at) => format!("{page}/{}/{id}", at.timestamp_micros()),
            SortKey::Amount(amount) => format!("{page}/a{amount}/{id}"),
            // Both may contain anything, so that the length of the first is included.
            SortKey::Name(name) => format!("{page}/n{}/{name}{id}", name.len()),
            SortKey::Grouped(grouping, value, at) => format!(
                "{page}/{}{}/{}/{value}{id}",
                grouping.letter(),
                at.timestamp_micros(),
                value.len()
            ),
        })
    }

    /// Decodes the output of [`Self::encode`].
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        // Postgres only accepts texts without U+0000, so that no id or name contains it.
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
    let micros = micros.parse().ok().filter(|micros| *micros >= EARLIEST)?;
    DateTime::from_timestamp_micros(micros)
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

    #[test]
    fn a_time_that_postgres_cannot_store_is_no_cursor() {
        let cursor = |text: &str| Cursor::decode(&URL_SAFE_NO_PAD.encode(text));
        assert!(cursor(&format!("2/{EARLIEST}/id")).is_some());
        for micros in [EARLIEST - 1, -8_000_000_000_000_000_000, i64::MIN, i64::MAX] {
            assert_eq!(cursor(&format!("2/{micros}/id")), None);
            assert_eq!(cursor(&format!("2/c{micros}/5/Parisid")), None);
        }
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
