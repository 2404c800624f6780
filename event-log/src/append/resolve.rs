//! What became of a commit whose acknowledgement was lost, or whose batch was rejected without
//! saying who was wrong.

use async_nats::Subject;

use super::appender::Pending;
use super::wire::{Expectation, Prepared};
use crate::ReadError;
use crate::envelope::event_id;
use crate::read::StreamReader;

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
/// for each aggregate that has moved.
pub(super) async fn resolve(
    reader: &StreamReader,
    members: &[Pending],
) -> Result<Vec<Fate>, ReadError> {
    let subjects: Vec<Subject> = members
        .iter()
        .flat_map(|member| &member.prepared.expectations)
        .map(|expectation| expectation.subject.clone())
        .collect();
    let lasts = reader.last_sequences(&subjects).await?;
    let mut fates = Vec::with_capacity(members.len());
    for member in members {
        let moved = member.prepared.expectations.iter().filter(|expectation| {
            lasts
                .get(expectation.subject.as_str())
                .copied()
                .unwrap_or(0)
                != expectation.sequence
        });
        fates.push(fate(reader, &member.prepared, moved).await?);
    }
    Ok(fates)
}

async fn fate(
    reader: &StreamReader,
    prepared: &Prepared,
    mut moved: impl Iterator<Item = &Expectation>,
) -> Result<Fate, ReadError> {
    let Some(expectation) = moved.next() else {
        return Ok(Fate::Absent);
    };
    let next = reader
        .first_after(&expectation.subject, expectation.sequence)
        .await?;
    Ok(match next {
        // The commit is one piece: finding one of its events is finding all.
        Some(message) if event_id(&message.headers) == Some(expectation.first) => {
            let total = prepared.messages.len() as u64;
            Fate::Stored(message.sequence - expectation.offset + total - 1)
        }
        // The expected event itself is gone (an erased record) or another's stands there.
        _ => Fate::Overtaken,
    })
}
