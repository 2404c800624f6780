//! The columns of a kind, stated once for every export format.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, Utc};

use crate::progress::Projection;

/// A kind of record that can be exported. Companies, deals and contacts each have one.
#[derive(Debug)]
pub struct Kind {
    /// Its name in file names, such as `contacts`.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The columns of its files, in this order.
    pub columns: &'static [Column],
    /// The same records under the labels that other CRMs import, if there is such a file.
    pub crm: Option<&'static Kind>,
    /// The records that changed, including deleted ones.
    pub changes: Option<&'static Kind>,
    /// The projection that keeps its rows.
    pub(super) projection: Projection,
    /// Reads these columns of one organization, newest first; see `snapshot_of!`.
    pub(super) statement: &'static str,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name: the record's field, or its label in another CRM.
    pub name: &'static str,
    /// The content of its cells.
    pub content: Content,
    /// The usual width of its cells in characters.
    pub width: u8,
}

/// The content of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text, phone numbers included.
    Text,
    /// The id of a record: text that is as readable on several lines.
    Id,
    /// A whole number.
    Integer,
    /// A number that may have a fraction.
    Number,
    /// A day.
    Date,
    /// A point in time.
    Timestamp,
}

/// The value of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Empty,
    /// Text as it was given.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number that may have a fraction.
    Number(f64),
    /// A day.
    Date(NaiveDate),
    /// A point in time.
    Timestamp(DateTime<Utc>),
}

impl Column {
    /// A column of ids.
    pub const fn id(name: &'static str, width: u8) -> Self {
        Self::new(name, Content::Id, width)
    }

    /// A column of text.
    pub const fn text(name: &'static str, width: u8) -> Self {
        Self::new(name, Content::Text, width)
    }

    /// A column of whole numbers.
    pub const fn integer(name: &'static str, width: u8) -> Self {
        Self::new(name, Content::Integer, width)
    }

    /// A column of numbers that may have a fraction.
    pub const fn number(name: &'static str, width: u8) -> Self {
        Self::new(name, Content::Number, width)
    }

    /// A column of days.
    pub const fn date(name: &'static str) -> Self {
        Self::new(name, Content::Date, 12)
    }

    /// A column of points in time.
    pub const fn timestamp(name: &'static str) -> Self {
        Self::new(name, Content::Timestamp, 19)
    }

    const fn new(name: &'static str, content: Content, width: u8) -> Self {
        Self {
            name,
            content,
            width,
        }
    }

    /// Returns the name as a heading for people: `companyId` becomes `Company ID`.
    pub fn heading(&self) -> String {
        let mut words: Vec<Cow<'_, str>> = Vec::new();
        let mut rest = self.name;
        while !rest.is_empty() {
            let end = rest[1..]
                .find(|c: char| c.is_ascii_uppercase())
                .map_or(rest.len(), |at| at + 1);
            let word = &rest[..end];
            words.push(match word {
                "id" | "Id" => "ID".into(),
                _ if words.is_empty() => capitalized(word).into(),
                _ => word.to_ascii_lowercase().into(),
            });
            rest = &rest[end..];
        }
        words.join(" ")
    }
}

/// Returns the columns followed by the deletion time. `M` is one more than `N`.
pub(super) const fn with_deletion<const N: usize, const M: usize>(
    columns: &[Column; N],
) -> [Column; M] {
    let mut all = [Column::timestamp("deletedAt"); M];
    let mut at = 0;
    while at < N {
        all[at] = columns[at];
        at += 1;
    }
    all
}

fn capitalized(word: &str) -> String {
    word[..1].to_ascii_uppercase() + &word[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_words() {
        let heading = |name| Column::text(name, 1).heading();
        assert_eq!(heading("id"), "ID");
        assert_eq!(heading("firstName"), "First name");
        assert_eq!(heading("companyId"), "Company ID");
        assert_eq!(heading("expectedCloseDate"), "Expected close date");
    }
}
