//! Business records: one row for each that is there, with the fields that were written.

mod by_time;
mod changes;
mod deletions;
mod leads;
mod orders;
mod revenue;
mod tables;

use chrono::{DateTime, Utc};
use futures::future::{self, BoxFuture};
use indexmap::IndexMap;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;

pub(super) use self::tables::{Clients, Companies, Contacts, Deals, Leads, Orders};
use super::totals::Totals;
use super::{ApplyError, Projection};

/// A record's organization and id.
type Key<'a> = (&'a str, &'a str);

/// Rows that came or went, by organization.
type Counts = Vec<(String, i64)>;

/// A record to write, as the batch leaves it.
struct Put<'a, R> {
    key: Key<'a>,
    record: &'a R,
    updated_at: DateTime<Utc>,
}

/// A record to take away, as the batch leaves it.
struct Gone<'a> {
    key: Key<'a>,
    deleted_at: DateTime<Utc>,
}

/// The keys of all rows that a batch touches.
fn touched<'a, R>(put: &[Put<'a, R>], gone: &[Gone<'a>]) -> impl Iterator<Item = Key<'a>> {
    let gone = gone.iter().map(|gone| gone.key);
    put.iter().map(|put| put.key).chain(gone)
}

/// What an event leaves of its record.
enum Left<'a, R> {
    All(&'a R),
    Nothing,
}

/// The table of one kind of record.
trait Table: Send + Sync {
    /// The table's name, which is the projection's and that of its totals.
    const NAME: &'static str;
    /// That table, and those that are derived from it.
    const TABLES: &'static [&'static str];
    /// The records' aggregate.
    const AGGREGATES: &'static [AggregateType];
    /// What an event carries of a record: all of it.
    type Record: Send + Sync;

    /// What an event of this kind leaves.
    fn left_by(event: &Event) -> Option<Left<'_, Self::Record>>;

    /// Writes rows; tells how many were not there before.
    fn upsert<'a>(
        rows: &'a mut PgConnection,
        put: &'a [Put<'a, Self::Record>],
    ) -> BoxFuture<'a, Result<Counts, sqlx::Error>>;

    /// Takes rows away; tells how many were there.
    fn delete<'a>(
        rows: &'a mut PgConnection,
        gone: &'a [Gone<'a>],
    ) -> BoxFuture<'a, Result<Counts, sqlx::Error>>;

    /// Keeps what else is derived from these rows, before they change.
    fn derive<'a>(
        _rows: &'a mut PgConnection,
        _put: &'a [Put<'a, Self::Record>],
        _gone: &'a [Gone<'a>],
        _totals: &'a mut Totals,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(future::ready(Ok(())))
    }
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

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let (put, gone) = last_of_each::<T>(events);
            let mut totals = Totals::default();
            T::derive(rows, &put, &gone, &mut totals).await?;
            if !put.is_empty() {
                for (org_id, added) in T::upsert(rows, &put).await? {
                    totals.add(&org_id, T::NAME, added);
                }
            }
            if !gone.is_empty() {
                for (org_id, removed) in T::delete(rows, &gone).await? {
                    totals.add(&org_id, T::NAME, -removed);
                }
            }
            totals.write(rows).await?;
            changes::note(rows, T::NAME, events).await?;
            Ok(())
        })
    }
}

/// Each event carries the whole record, so that of a batch only the last of each matters.
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
