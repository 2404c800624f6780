//! What became of a commit whose acknowledgement was lost, or whose batch was rejected without
//! saying who was wrong.

use async_nats::Subject;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::wire::{Expectation, Prepared};
use crate::ReadError;
use crate::read::StreamReader;

/// Aggregates that are looked at side by side.
const SIDE_BY_SIDE: usize = 32;

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in the log; its last event has this sequence.
    Stored(u64),
    /// Somebody else's event stands where it expected to stand.
    Overtaken,
    /// It is not there, and nothing stands in its way.
    Absent,
}

/// Looks at the aggregates of each member: one round trip for all that are untouched, one more
/// for each member of which one has moved.
pub(super) async fn resolve(
    reader: &StreamReader,
    members: &[&Prepared],
) -> Result<Vec<Fate>, ReadError> {
    let subjects: Vec<Subject> = members
        .iter()
        .flat_map(|member| &member.expectations)
        .map(|expectation| expectation.subject.clone())
        .collect();
    let lasts = reader.last_sequences(&subjects).await?;
    let moved = |expectation: &&Expectation| {
        let last = lasts.get(expectation.subject.as_str());
        last.copied().unwrap_or(0) != expectation.sequence
    };
    let fates = members.iter().map(|member| {
        let moved = member.expectations.iter().find(moved);
        fate(reader, member, moved)
    });
    // Collected first: a lazily made future here would have to prove itself for every lifetime.
    let fates: Vec<_> = fates.collect();
    stream::iter(fates)
        .buffered(SIDE_BY_SIDE)
        .try_collect()
        .await
}

async fn fate(
    reader: &StreamReader,
    prepared: &Prepared,
    moved: Option<&Expectation>,
) -> Result<Fate, ReadError> {
    let Some(expectation) = moved else {
        return Ok(Fate::Absent);
    };
    let next = reader.first_after(&expectation.subject, expectation.sequence);
    Ok(match next.await? {
        // The commit is one piece: finding one of its events is finding all.
        Some(found) if found.id == Some(expectation.first) => {
            let behind = prepared.messages() - 1 - expectation.offset;
            Fate::Stored(found.sequence + behind)
        }
        // The expected event itself is gone (an erased record) or another's stands there.
        _ => Fate::Overtaken,
    })
}
