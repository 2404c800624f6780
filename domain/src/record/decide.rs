//! What a command on a record leads to, given the record's last event.

use chrono::{DateTime, Utc};
use schemas::{Event, RecordId, Recorded};

use super::{Draft, Kind};
use crate::Revision;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before, or had been deleted.
    Created,
    /// It was replaced.
    Updated,
    /// It was the same already; nothing is written.
    Unchanged,
}

/// A record of that id stands already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("id: a record with this id already exists")]
pub struct Exists;

/// Makes a record that must not be there yet.
pub fn create(
    id: RecordId,
    draft: Draft,
    last: Option<&Event>,
    now: DateTime<Utc>,
) -> Result<Event, Exists> {
    if draft.fields.kind().stands(last) {
        return Err(Exists);
    }
    put(id, draft, None, now).1.ok_or(Exists)
}

/// Makes a record or replaces the one that is there. `createdAt` is what was given, else what it
/// was, else now.
pub fn put(
    id: RecordId,
    draft: Draft,
    last: Option<&Event>,
    now: DateTime<Utc>,
) -> (Change, Option<Event>) {
    // The read models keep microseconds; both must say the same.
    let now = DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now);
    match draft.fields.write(id, draft.created_at, last, now) {
        Some((change, event)) => (change, Some(event)),
        None => (Change::Unchanged, None),
    }
}

/// Deletes a record; `None` where there is none.
pub fn delete(kind: Kind, id: RecordId, last: Option<&Event>) -> Option<Event> {
    kind.stands(last).then(|| kind.deleted(id))
}

/// Which state of a record stands after its last event; `None` where there is none.
pub fn revision(kind: Kind, last: Option<&Recorded>) -> Option<Revision> {
    let last = last.filter(|last| kind.stands(Some(&last.event)))?;
    Some(Revision::of_record(last.time))
}
