//! What a batch changes in the blocks of a list, decided from the blocks around its changes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest};

/// The place of a row in its list: microseconds by which it is older than 1970, so that the newest
/// come first, and its id.
pub(super) type Key = (i64, String);

/// How many more rows are at a key than before: one, or one less.
pub(super) type Changes = BTreeMap<Key, i64>;

/// The size of blocks: one of the second level holds some of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Some 256 rows.
    First,
    /// Some 16,384 rows.
    Second,
}

pub(super) const LEVELS: [Level; 2] = [Level::First, Level::Second];

/// The maximum number of stretches in which the blocks of a list are read, so that changes far from
/// each other do not read everything in between.
const STRETCHES: usize = 16;

impl Level {
    pub(super) fn number(self) -> i16 {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }

    /// Whether the row of an id begins a block. Migration 0033 repeats this rule.
    fn begins_with(self, id: &str) -> bool {
        let bound: &[u8] = match self {
            Self::First => &[0x01],
            Self::Second => &[0, 0x04],
        };
        let hash = digest(&SHA256, id.as_bytes());
        let hash: &[u8] = hash.as_ref();
        hash < bound
    }
}

pub(super) fn key(created_at: DateTime<Utc>, id: &str) -> Key {
    (-created_at.timestamp_micros(), id.to_owned())
}

/// The key of the block that every list begins with: before all rows.
fn head() -> Key {
    (i64::MIN, String::new())
}

/// The creation time of the row of a key; the block that a list begins with has none.
pub(super) fn time(key: &Key) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(key.0.checked_neg()?)
}

/// The stretches of a list that contain changes.
pub(super) fn ranges(changes: &Changes) -> impl Iterator<Item = (&Key, &Key)> {
    let keys: Vec<_> = changes.keys().collect();
    let length = keys.len().div_ceil(STRETCHES).max(1);
    let ranges: Vec<_> = keys
        .chunks(length)
        .filter_map(|keys| Some((*keys.first()?, *keys.last()?)))
        .collect();
    ranges.into_iter()
}

/// The changes to the blocks of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Blocks whose first row is gone: they become a part of the block before.
    pub(super) gone: BTreeSet<Key>,
    /// Blocks whose bounds change, so that they are counted again. New blocks are among them.
    pub(super) anew: BTreeSet<Key>,
    /// By how much the counts of other blocks change.
    pub(super) shifted: BTreeMap<Key, i64>,
}

impl Plan {
    /// `known` are the blocks that begin within the stretches of the changes, and for each stretch
    /// the one that begins before it.
    pub(super) fn of(changes: &Changes, level: Level, known: BTreeSet<Key>) -> Self {
        let mut plan = Self::default();
        let mut blocks = known;
        let edges = || {
            let changes = changes.iter();
            changes.filter(move |(key, _)| level.begins_with(&key.1))
        };
        for (key, change) in edges() {
            if *change > 0 {
                blocks.insert(key.clone());
                plan.anew.insert(key.clone());
            } else {
                blocks.remove(key);
                plan.gone.insert(key.clone());
            }
        }
        for (key, _) in edges() {
            let before = blocks.range::<Key, _>(..key).next_back();
            plan.anew.insert(before.cloned().unwrap_or_else(head));
        }
        for (key, change) in changes {
            let block = blocks.range::<Key, _>(..=key).next_back();
            let block = block.cloned().unwrap_or_else(head);
            if !plan.anew.contains(&block) {
                *plan.shifted.entry(block).or_default() += change;
            }
        }
        plan.shifted.retain(|_, change| *change != 0);
        plan
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    /// Ids of which about half begin a block, some of them one of the second level.
    static IDS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let ids = (0..100_000).map(|number| format!("id{number}"));
        let chosen = ids
            .enumerate()
            .filter(|(number, id)| *number < 400 || Level::First.begins_with(id));
        chosen.map(|(_, id)| id).collect()
    });

    /// The first key of each block and its number of rows, derived from the rows.
    fn blocks(rows: &BTreeSet<Key>, level: Level) -> BTreeMap<Key, i64> {
        let (mut blocks, mut block) = (BTreeMap::new(), head());
        for row in rows {
            if level.begins_with(&row.1) {
                block = row.clone();
            }
            *blocks.entry(block.clone()).or_default() += 1;
        }
        blocks
    }

    /// The input of the plan: the blocks within the stretches, and the last before each.
    fn known(blocks: &BTreeMap<Key, i64>, changes: &Changes) -> BTreeSet<Key> {
        let stretches = ranges(changes).flat_map(|(from, to)| {
            let before = blocks.range::<Key, _>(..from).next_back();
            before.into_iter().chain(blocks.range::<Key, _>(from..=to))
        });
        stretches.map(|(key, _)| key.clone()).collect()
    }

    fn carry_out(
        plan: &Plan,
        mut blocks: BTreeMap<Key, i64>,
        rows: &BTreeSet<Key>,
    ) -> BTreeMap<Key, i64> {
        for (key, change) in &plan.shifted {
            *blocks.entry(key.clone()).or_default() += change;
        }
        blocks.retain(|key, _| !plan.gone.contains(key));
        for key in &plan.anew {
            blocks.entry(key.clone()).or_default();
        }
        for key in &plan.anew {
            let behind = blocks.range::<Key, _>((Excluded(key), Unbounded)).next();
            let until = behind.map_or(Unbounded, |(next, _)| Excluded(next));
            let count = rows.range::<Key, _>((Included(key), until)).count();
            blocks.insert(key.clone(), i64::try_from(count).unwrap());
        }
        blocks.retain(|_, count| *count != 0);
        blocks
    }

    proptest! {
        #[test]
        fn a_plan_leads_to_the_blocks_that_the_rows_make_up(
            before in prop::collection::vec((0..4_i64, any::<prop::sample::Index>()), 0..300),
            touched in prop::collection::vec((0..4_i64, any::<prop::sample::Index>()), 1..300),
        ) {
            let key = |(age, id): (i64, prop::sample::Index)| (age, id.get(IDS.as_slice()).clone());
            let before: BTreeSet<Key> = before.into_iter().map(key).collect();
            let touched: BTreeSet<Key> = touched.into_iter().map(key).collect();
            let mut after = before.clone();
            let mut changes = Changes::new();
            for row in touched {
                let is_there = after.remove(&row);
                changes.insert(row.clone(), if is_there { -1 } else { 1 });
                if !is_there {
                    after.insert(row);
                }
            }
            for level in LEVELS {
                let kept = blocks(&before, level);
                let plan = Plan::of(&changes, level, known(&kept, &changes));
                prop_assert_eq!(carry_out(&plan, kept, &after), blocks(&after, level));
            }
        }
    }
}
