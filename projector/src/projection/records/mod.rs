//! Business records: one row for each existing record, with the fields that were written.

mod by_time;
mod by_value;
mod changes;
mod deletions;
mod grouped;
mod leads;
mod orders;
mod revenue;
mod tables;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use futures::future::{self, BoxFuture};
use indexmap::IndexMap;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;

use self::by_value::ByValue;
use self::grouped::Grouped;
pub(super) use self::tables::{Clients, Companies, Contacts, Deals, Leads, Orders};
use super::blocks::{Blocks, RowKey, Rows};
use super::totals::Totals;
use super::{ApplyError, Projection};

/// A record's organization and id.
type Key<'a> = (&'a str, &'a str);

/// A record to write, in its state after the batch.
struct Put<'a, R> {
    key: Key<'a>,
    record: &'a R,
    updated_at: DateTime<Utc>,
}

/// A record that the batch deletes.
struct Gone<'a> {
    key: Key<'a>,
    deleted_at: DateTime<Utc>,
}

/// A row before a batch, with the columns that something is derived from.
struct Held {
    org_id: String,
    id: String,
    created_at: DateTime<Utc>,
    /// Empty for kinds that are not listed by state, and where there is none.
    state: String,
    /// 0 for kinds whose amounts are not summed up.
    amount: i64,
    /// The values of [`Table::BY_VALUE`], in its order; empty where there is none. One more, empty,
    /// gives the array its type if a table counts none.
    values: Vec<String>,
    /// The same of [`Table::GROUPS`].
    groups: Vec<String>,
}

/// The changes of a batch.
struct Change<'a, R> {
    before: Vec<Held>,
    put: Vec<Put<'a, R>>,
    gone: Vec<Gone<'a>>,
}

/// The keys of all rows that a batch touches.
fn touched<'a, R>(put: &[Put<'a, R>], gone: &[Gone<'a>]) -> impl Iterator<Item = Key<'a>> {
    let gone = gone.iter().map(|gone| gone.key);
    put.iter().map(|put| put.key).chain(gone)
}

/// The state of a record after an event.
enum Left<'a, R> {
    All(&'a R),
    Nothing,
}

/// The table of one kind of record.
trait Table: Send + Sync {
    /// The table's name, which is the projection's and that of its totals.
    const NAME: &'static str;
    /// That table, and the tables derived from it.
    const TABLES: &'static [&'static str];
    /// The records' aggregate.
    const AGGREGATES: &'static [AggregateType];
    /// The content of a record, which every event carries in full.
    type Record: Send + Sync;

    /// The order and the lists of the table's rows.
    const ROWS: Rows;
    /// The columns for which the records with each value are counted.
    const BY_VALUE: &'static [&'static str];
    /// The columns by which series of the records are grouped.
    const GROUPS: &'static [&'static str];

    /// The state of the record after an event, if it is of this kind.
    fn left_by(event: &Event) -> Option<Left<'_, Self::Record>>;

    /// The rows that a batch touches, as stored.
    fn held<'a>(
        rows: &'a mut PgConnection,
        put: &'a [Put<'a, Self::Record>],
        gone: &'a [Gone<'a>],
    ) -> BoxFuture<'a, Result<Vec<Held>, sqlx::Error>>;

    /// Writes rows.
    fn upsert<'a>(
        rows: &'a mut PgConnection,
        put: &'a [Put<'a, Self::Record>],
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Deletes rows.
    fn delete<'a>(
        rows: &'a mut PgConnection,
        gone: &'a [Gone<'a>],
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Updates the other tables derived from these rows.
    fn derive<'a>(
        _rows: &'a mut PgConnection,
        _change: &'a Change<'a, Self::Record>,
        _totals: &'a mut Totals,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(future::ready(Ok(())))
    }

    /// The creation time of a record, and its state if there is a list of each.
    fn listed(record: &Self::Record) -> (DateTime<Utc>, Cow<'_, str>);

    /// The amount of a record; 0 if amounts are not summed up.
    fn amount(record: &Self::Record) -> i64;

    /// A record's values of [`Self::BY_VALUE`], in its order.
    fn values(record: &Self::Record) -> impl Iterator<Item = Option<Cow<'_, str>>>;

    /// A record's values of [`Self::GROUPS`], in its order.
    fn groups(record: &Self::Record) -> impl Iterator<Item = Option<Cow<'_, str>>>;
}

impl<T: Table> Projection for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        T::AGGREGATES
    }

    fn tables(&self) -> &'static [&'static str] {
        T::TABLES
    }

    fn folds_by(&self) -> Vec<String> {
        T::ROWS.indexes()
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let (put, gone) = last_of_each::<T>(events);
            let before = T::held(rows, &put, &gone).await?;
            let change = Change { before, put, gone };
            let (mut totals, blocks, by_value) = count::<T>(&change);
            let grouped = Grouped::of::<T>(&change);
            T::derive(rows, &change, &mut totals).await?;
            if !change.put.is_empty() {
                T::upsert(rows, &change.put).await?;
            }
            if !change.gone.is_empty() {
                T::delete(rows, &change.gone).await?;
            }
            totals.write(rows).await?;
            by_value.write(rows, T::NAME).await?;
            grouped.write(rows, T::NAME).await?;
            blocks.write(rows).await?;
            changes::note(rows, T::NAME, events).await?;
            Ok(())
        })
    }
}

/// Subtracts the rows before a batch, and adds the rows after it.
fn count<'a, T: Table>(change: &'a Change<'_, T::Record>) -> (Totals, Blocks, ByValue<'a>) {
    let (mut totals, mut blocks) = (Totals::default(), Blocks::of(T::ROWS));
    let mut by_value = ByValue::default();
    for held in &change.before {
        totals.add(&held.org_id, T::NAME, -1);
        blocks.remove(RowKey {
            org_id: &held.org_id,
            parent: "",
            state: &held.state,
            created_at: held.created_at,
            id: &held.id,
        });
        for (field, value) in T::BY_VALUE.iter().zip(&held.values) {
            by_value.add(&held.org_id, field, value.into(), -1);
        }
    }
    for Put { key, record, .. } in &change.put {
        let (created_at, state) = T::listed(record);
        totals.add(key.0, T::NAME, 1);
        blocks.add(RowKey {
            org_id: key.0,
            parent: "",
            state: &state,
            created_at,
            id: key.1,
        });
        for (field, value) in T::BY_VALUE.iter().zip(T::values(record)) {
            by_value.add(key.0, field, value.unwrap_or_default(), 1);
        }
    }
    (totals, blocks, by_value)
}

/// Each event carries the whole record, so only the last of each in a batch matters.
fn last_of_each<'a, T: Table>(events: &[&'a Recorded]) -> (Vec<Put<'a, T::Record>>, Vec<Gone<'a>>) {
    let mut last: IndexMap<Key<'a>, _> = IndexMap::with_capacity(events.len());
    for recorded in events {
        let key = (recorded.stream.org.as_str(), recorded.stream.id.as_str());
        if let Some(left) = T::left_by(&recorded.event) {
            last.insert(key, (left, recorded.time));
        }
    }
    let mut put = Vec::with_capacity(last.len());
    let mut gone = Vec::new();
    for (key, (left, at)) in last {
        match left {
            Left::All(record) => put.push(Put {
                key,
                record,
                updated_at: at,
            }),
            Left::Nothing => gone.push(Gone {
                key,
                deleted_at: at,
            }),
        }
    }
    (put, gone)
}
