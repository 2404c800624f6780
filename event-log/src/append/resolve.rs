//! Finds out what became of a commit whose acknowledgement was lost, or whose batch was rejected
//! without saying which commit was wrong.

use std::collections::HashMap;

use async_nats::Subject;
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use super::wire::{Expectation, Prepared};
use crate::ReadError;
use crate::envelope::event_id;
use crate::read::{LastEvent, Most, Start, StreamReader};

/// Aggregates that are looked up concurrently.
const SIDE_BY_SIDE: usize = 32;

/// The fate of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in the log; its last event has this sequence.
    Stored(u64),
    /// Another event is stored where it expected its own.
    Overtaken,
    /// It is not in the log, and nothing prevents it.
    Absent,
}

/// Looks up the aggregates of each member: one round trip for all that are unchanged or stored as
/// they were sent, one more for each of the others. `None` for members about which nothing is known
/// at `by`. Results of the others still count, so however slow the answers are, fewer members are
/// looked up next time.
pub(super) async fn resolve(
    reader: &StreamReader,
    members: &[&Prepared],
    by: Instant,
) -> Vec<Option<Fate>> {
    let mut fates = vec![None; members.len()];
    let subjects: Vec<Subject> = members
        .iter()
        .flat_map(|member| &member.expectations)
        .map(|expectation| expectation.subject.clone())
        .collect();
    let Ok(Ok(lasts)) = timeout_at(by, reader.last_places(&subjects)).await else {
        return fates;
    };
    let mut asking = Vec::new();
    for (nth, member) in members.iter().enumerate() {
        match at_first_sight(member, &lasts) {
            Ok(fate) => fates[nth] = Some(fate),
            Err(moved) => {
                asking.push(async move { (nth, fate(reader, member, moved).await) });
            }
        }
    }
    let mut asking = stream::iter(asking).buffer_unordered(SIDE_BY_SIDE);
    while let Ok(Some((nth, fate))) = timeout_at(by, asking.next()).await {
        fates[nth] = fate.ok();
    }
    fates
}

/// The fate that the last events of a commit's aggregates show, or else an aggregate that has moved
/// in a way that they do not explain.
fn at_first_sight<'m>(
    member: &'m Prepared,
    lasts: &HashMap<String, LastEvent>,
) -> Result<Fate, &'m Expectation> {
    for expectation in &member.expectations {
        let last = lasts.get(expectation.subject.as_str());
        if last.map_or(0, |last| last.sequence) == expectation.sequence {
            continue;
        }
        return match last {
            // A commit is atomic: finding an event that only it can have is finding all.
            Some(last) if last.id == Some(expectation.last) && expectation.shows_all() => {
                let behind = member.messages() - expectation.offset - expectation.len;
                Ok(Fate::Stored(last.sequence + behind))
            }
            _ => Err(expectation),
        };
    }
    Ok(Fate::Absent)
}

async fn fate(
    reader: &StreamReader,
    prepared: &Prepared,
    moved: &Expectation,
) -> Result<Fate, ReadError> {
    let next = reader.first_after(&moved.subject, moved.sequence);
    Ok(match next.await? {
        Some(found) if event_id(&found.headers) == Some(moved.first) => {
            if moved.shows_all() {
                let behind = prepared.messages() - 1 - moved.offset;
                Fate::Stored(found.sequence + behind)
            } else {
                all_or_overtaken(reader, prepared, moved).await?
            }
        }
        // The expected event itself is gone (an erased record) or another is in its place.
        _ => Fate::Overtaken,
    })
}

/// The fate of a commit that shares ids with others: stored only if each event of the write is in
/// the log, one after the other.
async fn all_or_overtaken(
    reader: &StreamReader,
    prepared: &Prepared,
    moved: &Expectation,
) -> Result<Fate, ReadError> {
    let mut after = moved.sequence;
    let mut ids = prepared.ids(moved).peekable();
    while ids.peek().is_some() {
        let found = reader.read(&moved.subject, Start::After(after), Most::BATCH);
        let found = found.await?;
        for (stored, id) in found.messages.iter().zip(ids.by_ref()) {
            if event_id(&stored.headers) != Some(id) {
                return Ok(Fate::Overtaken);
            }
            after = stored.sequence;
        }
        if found.is_complete && ids.peek().is_some() {
            return Ok(Fate::Overtaken);
        }
    }
    let behind = prepared.messages() - moved.offset - moved.len;
    Ok(Fate::Stored(after + behind))
}

impl Expectation {
    /// Whether one event of the write, found in the log, shows that all of it is there.
    fn shows_all(&self) -> bool {
        self.len == 1 || !self.derived
    }
}
