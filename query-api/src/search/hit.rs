//! Records found by a search.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row as _};

use crate::paging::{Listed, SortKey, Sorted};

/// A found row: a record, and the possible sort keys of its list.
pub(super) struct Found<T> {
    record: T,
    text: Option<String>,
    amount: Option<i64>,
    created_at: DateTime<Utc>,
    id: String,
}

/// A found record, and its position in the list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Hit<T> {
    pub(crate) record: T,
    #[serde(skip)]
    sort_key: SortKey,
    #[serde(skip)]
    created_at: DateTime<Utc>,
    #[serde(skip)]
    id: String,
}

/// A page of the records found.
#[derive(Debug)]
pub(crate) struct Hits<T> {
    pub(crate) rows: Vec<Hit<T>>,
    /// The total number of records found.
    pub(crate) total: i64,
}

impl<T> Hits<T> {
    pub(super) fn of(rows: Vec<Found<T>>, by: Sorted, total: i64) -> Self {
        let rows = rows.into_iter().map(|row| row.placed(by));
        Self {
            rows: rows.collect(),
            total,
        }
    }

    /// Converts the records.
    pub(crate) fn map<U>(self, map: impl Fn(T) -> U) -> Hits<U> {
        let rows = self.rows.into_iter().map(|hit| Hit {
            record: map(hit.record),
            sort_key: hit.sort_key,
            created_at: hit.created_at,
            id: hit.id,
        });
        Hits {
            rows: rows.collect(),
            total: self.total,
        }
    }
}

impl<T> Found<T> {
    fn placed(self, by: Sorted) -> Hit<T> {
        let text = self.text.unwrap_or_default();
        let sort_key = match by {
            Sorted::Created => SortKey::Created(self.created_at),
            Sorted::Name => SortKey::Name(text),
            Sorted::Amount => SortKey::Amount(self.amount.unwrap_or_default()),
            Sorted::Grouped(grouping) => SortKey::Grouped(grouping, text, self.created_at),
        };
        Hit {
            record: self.record,
            sort_key,
            created_at: self.created_at,
            id: self.id,
        }
    }
}

impl<T: Serialize> Listed for Hit<T> {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn sort_key(&self) -> SortKey {
        self.sort_key.clone()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl<'r, T: FromRow<'r, PgRow>> FromRow<'r, PgRow> for Found<T> {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            record: T::from_row(row)?,
            text: row.try_get("place_text")?,
            amount: row.try_get("place_amount")?,
            created_at: row.try_get("created_at")?,
            id: row.try_get("id")?,
        })
    }
}
