//! The receipts of lines that changed nothing.
//!
//! A line that changes its record leaves its receipt on the event. One that changes nothing leaves
//! no event, so its receipt is kept elsewhere: otherwise a late repeat would write it, even if
//! someone else has changed the record meanwhile. The lines of an upload share a claim for each
//! block of their numbers, which holds a mark of each such line.

use std::collections::{BTreeMap, BTreeSet};

use event_log::{AppendError, Commit, Expected, Position};
use schemas::claim::{Claimed, Released};
use schemas::{Event, Recorded, StreamId};

use super::batch::{LineReceipt, Target};
use crate::commands::ATTEMPTS;
use crate::{Commands, LogError};

/// Line numbers of one block: few enough that a client which sends one line at a time does not
/// write much, many enough that a chunk of a thousand has few blocks.
const BLOCK: u64 = 128;
/// The part of a fingerprint that is kept: it only has to tell a line from another one.
const MARK: usize = 12;

/// Marks of lines, by the lines' numbers.
pub(super) type Marks = BTreeMap<u64, String>;

/// What is kept of a line's receipt.
pub(super) fn mark(own: &LineReceipt) -> &str {
    let fingerprint = &own.receipt.fingerprint;
    fingerprint.get(..MARK).unwrap_or(fingerprint)
}

/// The marks of those of these lines that changed nothing when they were written before.
pub(super) async fn known(
    commands: &Commands,
    target: Target<'_>,
    lines: &BTreeSet<u64>,
) -> Result<Marks, LogError> {
    let mut known = Marks::new();
    let Some(key) = target.key else {
        return Ok(known);
    };
    let blocks: BTreeSet<u64> = lines.iter().map(|line| line / BLOCK).collect();
    let streams: Vec<_> = blocks
        .iter()
        .map(|block| stream(commands, key, *block))
        .collect();
    let lasts = commands.log().last_of_each(&streams).await?;
    for last in lasts.iter().flatten() {
        let marks = marks_in(commands, last).into_iter();
        known.extend(marks.filter(|(line, _)| lines.contains(line)));
    }
    Ok(known)
}

/// Keeps marks of lines. Returns the position from which they are known.
pub(super) async fn remember(
    commands: &Commands,
    target: Target<'_>,
    marks: Marks,
) -> Result<Option<Position>, LogError> {
    let (Some(key), mut open) = (target.key, blocks(marks)) else {
        return Ok(None);
    };
    let mut reached: Option<Position> = None;
    for _ in 0..ATTEMPTS {
        if open.is_empty() {
            break;
        }
        let streams: Vec<_> = open
            .keys()
            .map(|block| stream(commands, key, *block))
            .collect();
        let lasts = commands.log().last_of_each(&streams).await?;
        let (mut commits, mut trying) = (Vec::new(), Vec::new());
        for ((block, marks), (stream, last)) in open.into_iter().zip(streams.into_iter().zip(lasts))
        {
            if let Some(commit) = keeping(commands, target, stream, last, &marks) {
                commits.push(commit);
                trying.push((block, marks));
            }
        }
        open = BTreeMap::new();
        let results = commands.log().commit_each(commits).await;
        for (result, (block, marks)) in results.into_iter().zip(trying) {
            match result {
                Ok(position) => {
                    let both = reached.into_iter().chain([position]);
                    reached = both.max_by_key(|position| position.sequence());
                }
                Err(AppendError::Conflict) => {
                    open.insert(block, marks);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    if open.is_empty() {
        Ok(reached)
    } else {
        Err(LogError::Busy)
    }
}

/// The commit that adds marks to those of their block; `None` if the block has them already.
fn keeping(
    commands: &Commands,
    target: Target<'_>,
    stream: StreamId,
    last: Option<Recorded>,
    marks: &Marks,
) -> Option<Commit> {
    let expected = Expected::after(last.as_ref().map(|last| last.sequence));
    let before = last.as_ref().map(|last| marks_in(commands, last));
    let before = before.unwrap_or_default();
    if marks.keys().all(|line| before.contains_key(line)) {
        return None;
    }
    let mut all = marks.clone();
    // The first answer to a line remains.
    all.extend(before);
    // Plain text into memory: it cannot fail.
    let holder = serde_json::to_string(&all).unwrap_or_default();
    let claimed = Event::ClaimClaimed(Claimed { holder });
    let released = last.and_then(|last| match last.event {
        Event::ClaimClaimed(Claimed { holder }) => Some(Event::ClaimReleased(Released { holder })),
        _ => None,
    });
    let events = released.into_iter().chain([claimed]).collect();
    let write = commands.write(target.origin, commands.now(), stream, expected, events);
    Some(write.into())
}

fn blocks(marks: Marks) -> BTreeMap<u64, Marks> {
    let mut blocks: BTreeMap<u64, Marks> = BTreeMap::new();
    for (line, mark) in marks {
        blocks.entry(line / BLOCK).or_default().insert(line, mark);
    }
    blocks
}

fn stream(commands: &Commands, key: &str, block: u64) -> StreamId {
    let block = format!("{key} {block}");
    commands.log().claim("unchanged lines", &block)
}

/// The marks that the last event of a block holds, if they are still valid.
fn marks_in(commands: &Commands, last: &Recorded) -> Marks {
    match &last.event {
        Event::ClaimClaimed(Claimed { holder }) if commands.is_fresh(last.time) => {
            serde_json::from_str(holder).unwrap_or_default()
        }
        _ => Marks::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_back_as_they_were_kept() {
        let marks: Marks = [(1, "a".to_owned()), (1_000_000, "b".to_owned())].into();
        let text = serde_json::to_string(&marks).unwrap();
        assert_eq!(serde_json::from_str::<Marks>(&text).unwrap(), marks);
        assert_eq!(blocks(marks.clone()).len(), 2);
        let all = blocks(marks).into_values().flatten();
        assert_eq!(all.count(), 2);
    }
}
