//! Decides commands on a record, given the record's last event.

use chrono::{DateTime, Utc};
use schemas::{Event, RecordId, Recorded};

use super::{Draft, Kind};
use crate::Revision;

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It did not exist before, or had been deleted.
    Created,
    /// It was replaced.
    Updated,
    /// It was already the same; nothing is written.
    Unchanged,
}

/// A record with that id already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("id: a record with this id already exists")]
pub struct Exists;

/// Creates a record that must not exist yet.
pub fn create(
    id: RecordId,
    draft: Draft,
    last: Option<&Event>,
    now: DateTime<Utc>,
) -> Result<Event, Exists> {
    if draft.fields.kind().exists(last) {
        return Err(Exists);
    }
    put(id, draft, None, now).1.ok_or(Exists)
}

/// Creates a record or replaces the existing one. `createdAt` is the given time, else the existing
/// one, else now.
pub fn put(
    id: RecordId,
    draft: Draft,
    last: Option<&Event>,
    now: DateTime<Utc>,
) -> (Change, Option<Event>) {
    // The read models store microseconds; log and read models must agree.
    let now = DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now);
    match draft.fields.write(id, draft.created_at, last, now) {
        Some((change, event)) => (change, Some(event)),
        None => (Change::Unchanged, None),
    }
}

/// Deletes a record; `None` if there is none.
pub fn delete(kind: Kind, id: RecordId, last: Option<&Event>) -> Option<Event> {
    kind.exists(last).then(|| kind.deleted(id))
}

/// The revision of a record after its last event; `None` if there is no record.
pub fn revision(kind: Kind, last: Option<&Recorded>) -> Option<Revision> {
    let last = last.filter(|last| kind.exists(Some(&last.event)))?;
    Some(Revision::of_record(last.time))
}
