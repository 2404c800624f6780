//! What an endpoint wants, and since when.

use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Bytes of one endpoint's wishes that are held, about. Nobody changes what an endpoint wants so
/// often before what it wanted earlier was delivered.
const MAX_BYTES: usize = 16 * 1024;
/// What a wish takes up beside its patterns, and a pattern beside its text.
const WISH_BYTES: usize = 64;
const PATTERN_BYTES: usize = 24;

/// What an endpoint wants; nothing while it is disabled. Older wishes are kept, so that an event is
/// judged by what was wanted when it happened.
///
/// Where there are too many, the two oldest become one that wants what either did: what is still to
/// be delivered from so long ago may be more than was wanted at that moment, never less.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes(Vec<Wish>);

#[derive(Clone, Debug)]
struct Wish {
    since: u64,
    at: DateTime<Utc>,
    /// Everything, where there is none.
    patterns: Arc<[String]>,
}

/// An event's place beside the endpoints' own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// It has this sequence in the same stream.
    Behind(u64),
    /// It was written to another stream at this time.
    At(DateTime<Utc>),
}

impl Wishes {
    /// The first.
    pub(super) fn since(since: u64, at: DateTime<Utc>, patterns: &[String]) -> Self {
        let mut wishes = Self::default();
        wishes.push(since, at, patterns);
        wishes
    }

    /// Something else is wanted from now on, or the same as before.
    pub(super) fn push(&mut self, since: u64, at: DateTime<Utc>, patterns: &[String]) {
        let same = |wish: &&Wish| *wish.patterns == *patterns;
        if self.0.last().as_ref().is_some_and(same) {
            return;
        }
        let known = self.0.iter().find(same);
        let patterns = known.map_or_else(|| patterns.into(), |known| Arc::clone(&known.patterns));
        self.0.push(Wish {
            since,
            at,
            patterns,
        });
        while self.bytes() > MAX_BYTES && self.0.len() > 2 {
            self.merge_oldest();
        }
    }

    fn merge_oldest(&mut self) {
        let next = self.0.remove(1);
        let Some(oldest) = self.0.first_mut() else {
            return;
        };
        let mut both = oldest.patterns.to_vec();
        for pattern in next.patterns.iter() {
            if !both.contains(pattern) {
                both.push(pattern.clone());
            }
        }
        let everything = oldest.patterns.is_empty() || next.patterns.is_empty();
        let all = everything || patterns_bytes(&both) > MAX_BYTES / 4;
        oldest.patterns = if all { Arc::default() } else { both.into() };
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The sequence behind which it gets events.
    pub(super) fn began(&self) -> Option<u64> {
        self.0.first().map(|wish| wish.since)
    }

    /// What was wanted at a place in the log.
    pub(super) fn in_force(&self, when: When) -> Option<&[String]> {
        let in_force = self.0.iter().rfind(|wish| match when {
            When::Behind(sequence) => wish.since < sequence,
            When::At(time) => wish.at <= time,
        });
        in_force.map(|wish| &*wish.patterns)
    }

    /// What it holds in memory, about; patterns that are shared count each time.
    pub(super) fn bytes(&self) -> usize {
        let wishes = self.0.iter();
        wishes
            .map(|wish| WISH_BYTES + patterns_bytes(&wish.patterns))
            .sum()
    }
}

fn patterns_bytes(patterns: &[String]) -> usize {
    let patterns = patterns.iter();
    patterns.map(|pattern| PATTERN_BYTES + pattern.len()).sum()
}

#[cfg(test)]
mod tests {
    use domain::webhook::any_matches;
    use proptest::prelude::*;

    use super::*;

    fn patterns(one: u8) -> Vec<String> {
        vec![format!("custom.{one}"), "run.*".to_owned()]
    }

    #[test]
    fn what_is_wanted_again_costs_nothing() {
        let mut wishes = Wishes::since(1, DateTime::UNIX_EPOCH, &patterns(1));
        let before = wishes.bytes();
        (2..100_000).for_each(|since| wishes.push(since, DateTime::UNIX_EPOCH, &patterns(1)));
        assert_eq!((wishes.bytes(), wishes.began()), (before, Some(1)));
    }

    proptest! {
        #[test]
        fn however_often_they_change_nothing_that_was_wanted_is_lost(
            given in prop::collection::vec(any::<u8>(), 1..400),
        ) {
            let mut wishes = Wishes::default();
            for (since, one) in (1..).zip(&given) {
                wishes.push(since, DateTime::UNIX_EPOCH, &patterns(*one));
                prop_assert!(wishes.bytes() <= MAX_BYTES);
            }
            prop_assert_eq!(wishes.began(), Some(1));
            for (since, one) in (1..).zip(&given) {
                let wanted = wishes.in_force(When::Behind(since + 1)).unwrap();
                let event = format!("custom.{one}");
                prop_assert!(any_matches(wanted, &event));
            }
            let last = patterns(given[given.len() - 1]);
            prop_assert_eq!(wishes.in_force(When::Behind(u64::MAX)), Some(&last[..]));
        }
    }
}
