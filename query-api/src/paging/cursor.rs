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
}

/// Where an item stands in a list, by what that is ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// When the item came to be.
    Created(DateTime<Utc>),
    /// The beginning of its name, as lists compare it.
    Name(String),
    Amount(i64),
}

/// The place after an item of a list that is ordered by something, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of the page that begins here.
    pub(crate) page: i64,
    /// The item's place.
    pub(crate) place: Place,
    /// The item's id.
    pub(crate) id: String,
}

impl Place {
    /// What the list is ordered by that has this place.
    pub(crate) fn sorted(&self) -> Sorted {
        match self {
            Self::Created(_) => Sorted::Created,
            Self::Name(_) => Sorted::Name,
            Self::Amount(_) => Sorted::Amount,
        }
    }
}

impl Cursor {
    /// The cursor as text that stands in an address as it is.
    pub(crate) fn encode(&self) -> String {
        let (page, id) = (self.page, &self.id);
        URL_SAFE_NO_PAD.encode(match &self.place {
            Place::Created(at) => format!("{page}/{}/{id}", at.timestamp_micros()),
            Place::Amount(amount) => format!("{page}/a{amount}/{id}"),
            // Both may hold anything, so that the first says how long it is.
            Place::Name(name) => format!("{page}/n{}/{name}{id}", name.len()),
        })
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        // Postgres takes texts without U+0000 only, and has none with it.
        let mut parts = text.splitn(3, '/').filter(|_| !text.contains('\0'));
        let page = parts.next()?.parse().ok().filter(|page| *page > 0)?;
        let (place, rest) = (parts.next()?, parts.next()?);
        let (place, id) = match place.split_at_checked(1)? {
            ("a", amount) => (Place::Amount(amount.parse().ok()?), rest),
            ("n", length) => {
                let (name, id) = rest.split_at_checked(length.parse().ok()?)?;
                (Place::Name(name.to_owned()), id)
            }
            _ => {
                let at = DateTime::from_timestamp_micros(place.parse().ok()?)?;
                (Place::Created(at), rest)
            }
        };
        let id = id.to_owned();
        Some(Self { page, place, id })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places() -> impl Strategy<Value = Place> {
        let times = 0..4_102_444_800_000_000_i64;
        prop_oneof![
            times.prop_map(|at| Place::Created(DateTime::from_timestamp_micros(at).unwrap())),
            "[^\0]{0,100}".prop_map(Place::Name),
            any::<i64>().prop_map(Place::Amount),
        ]
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(
            page in 1..i64::MAX, place in places(), id in "[^\0]{0,128}",
        ) {
            let cursor = Cursor { page, place, id };
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
