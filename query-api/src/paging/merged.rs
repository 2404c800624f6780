//! Finds the row of a given number in several lists that are shown as one.

use chrono::{DateTime, Utc};

/// The position of a row in its list: the microseconds by which it is older than 1970, so that the
/// newest come first, and its id.
pub(crate) type Key = (i64, String);

/// Returns the time that is the given number of microseconds older than 1970; `None` before the
/// first row and after the last.
pub(crate) fn time(age: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(age.checked_neg()?)
}

/// A block of adjacent rows of one of the lists.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The number of its list, from 0.
    pub(crate) list: usize,
    /// Where it begins. It ends where the list's next one begins.
    pub(crate) key: Key,
    /// Its number of rows, at least one.
    pub(crate) count: i64,
}

/// The part of the lists in which the row is searched.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// For each list, the start of its rows that may come before the searched one.
    pub(crate) from: Vec<Key>,
    /// The searched row comes before this.
    pub(crate) until: Key,
    /// For each list, how many rows come before its start.
    before: Vec<i64>,
}

impl Window {
    /// All rows of the given number of lists.
    pub(crate) fn whole(lists: usize) -> Self {
        Self {
            from: vec![(i64::MIN, String::new()); lists],
            until: (i64::MAX, String::new()),
            before: vec![0; lists],
        }
    }

    /// Returns how many rows of all lists come before their starts.
    pub(crate) fn before(&self) -> i64 {
        self.before.iter().sum()
    }

    /// Narrows the window to some blocks around the row that `wanted` others precede. There must be
    /// one. `blocks` are those of all lists that begin in the window, in the order of their keys.
    pub(crate) fn narrow(&mut self, blocks: &[Block], wanted: i64) {
        let until = self.end(blocks, wanted);
        // At most this many rows come before the next block.
        let mut passed = self.before();
        let mut held = vec![0; self.from.len()];
        for block in blocks {
            if passed > wanted {
                break;
            }
            // The row is at or after this block's beginning, so that the list's earlier rows no
            // longer matter.
            let list = block.list;
            self.before[list] += std::mem::replace(&mut held[list], block.count);
            self.from[list].clone_from(&block.key);
            passed += block.count;
        }
        self.until = until;
    }

    /// Returns the first end of a block up to which more than `wanted` rows have ended.
    fn end(&self, blocks: &[Block], wanted: i64) -> Key {
        let mut behind = vec![&self.until; self.from.len()];
        let mut ends = Vec::with_capacity(blocks.len());
        for block in blocks.iter().rev() {
            ends.push((behind[block.list], block.count));
            behind[block.list] = &block.key;
        }
        ends.sort_unstable();
        let mut ended = self.before();
        let end = ends.into_iter().find(|(_, count)| {
            ended += count;
            ended > wanted
        });
        end.map_or(&self.until, |(end, _)| end).clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A row's list, and the number of levels of blocks that it begins.
    type Row = (usize, usize);

    const LISTS: usize = 4;

    fn key(place: usize) -> Key {
        (
            i64::try_from(place / 3).unwrap(),
            format!("{:03}", place % 3),
        )
    }

    /// Returns the blocks of a level that begin in the window. The place of a row is its index in
    /// `rows`.
    fn blocks(rows: &[Row], level: usize, window: &Window) -> Vec<Block> {
        let mut open: Vec<Option<Block>> = vec![None; LISTS];
        let mut all = Vec::new();
        for (place, (list, levels)) in rows.iter().enumerate() {
            let begun = |key| Block {
                list: *list,
                key,
                count: 0,
            };
            let head = || begun((i64::MIN, String::new()));
            if *levels >= level {
                all.extend(open[*list].replace(begun(key(place))));
            }
            open[*list].get_or_insert_with(head).count += 1;
        }
        all.extend(open.into_iter().flatten());
        all.retain(|block| block.key >= window.from[block.list] && block.key < window.until);
        all.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        all
    }

    proptest! {
        #[test]
        fn a_row_is_found_in_the_window_at_its_place_in_the_lists(
            rows in prop::collection::vec((0..LISTS, 0..3_usize), 1..200),
            wanted: prop::sample::Index,
        ) {
            let place = wanted.index(rows.len());
            let wanted = i64::try_from(place).unwrap();
            let mut window = Window::whole(LISTS);
            for level in [2, 1] {
                let blocks = blocks(&rows, level, &window);
                let largest = blocks.iter().map(|block| block.count).max().unwrap();
                window.narrow(&blocks, wanted);

                let shown = (0..rows.len()).filter(|place| {
                    let key = key(*place);
                    key >= window.from[rows[*place].0] && key < window.until
                });
                let shown: Vec<_> = shown.collect();
                let skipped = usize::try_from(wanted - window.before()).unwrap();
                prop_assert_eq!(shown.get(skipped), Some(&place));
                let most = largest * i64::try_from(2 * LISTS).unwrap();
                prop_assert!(i64::try_from(shown.len()).unwrap() <= most);
            }
        }
    }
}
