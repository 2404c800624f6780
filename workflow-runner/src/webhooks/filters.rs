//! Which events an endpoint wants, and since when.

use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Approximate limit of one endpoint's filters, if there are more than two. No owner changes the
/// filters so often before events for the earlier ones were delivered. The two newest are kept as
/// they are: nearly as much each, with the maximum number of patterns.
const MAX_BYTES: usize = 16 * 1024;
/// Overhead of a filter besides its patterns, and of a pattern besides its text.
const FILTER_BYTES: usize = 64;
const PATTERN_BYTES: usize = 24;

/// The events that an endpoint wants; empty while it is disabled. Older filters are kept, so that
/// an event is judged by the filter at the time it happened.
///
/// If there are too many, the two oldest are merged into one that matches either: an old event that
/// is still to be delivered may match more than was wanted at that moment, never less.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters(Vec<Filter>);

#[derive(Clone, Debug)]
struct Filter {
    since: u64,
    at: DateTime<Utc>,
    /// Empty means everything.
    patterns: Arc<[String]>,
}

/// An event's position relative to the endpoints' own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// It has this sequence in the same stream.
    Behind(u64),
    /// It was written to another stream at this time.
    At(DateTime<Utc>),
}

impl Filters {
    /// Creates the first filter.
    pub(super) fn since(since: u64, at: DateTime<Utc>, patterns: &[String]) -> Self {
        let mut filters = Self::default();
        filters.push(since, at, patterns);
        filters
    }

    /// Adds a filter from now on; the same one again changes nothing.
    pub(super) fn push(&mut self, since: u64, at: DateTime<Utc>, patterns: &[String]) {
        let same = |filter: &&Filter| *filter.patterns == *patterns;
        if self.0.last().as_ref().is_some_and(same) {
            return;
        }
        let known = self.0.iter().find(same);
        let patterns = known.map_or_else(|| patterns.into(), |known| Arc::clone(&known.patterns));
        self.0.push(Filter {
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

    /// The sequence after which it gets events.
    pub(super) fn began(&self) -> Option<u64> {
        self.0.first().map(|filter| filter.since)
    }

    /// The patterns in force at a position in the log.
    pub(super) fn in_force(&self, when: When) -> Option<&[String]> {
        let in_force = self.0.iter().rfind(|filter| match when {
            When::Behind(sequence) => filter.since < sequence,
            When::At(time) => filter.at <= time,
        });
        in_force.map(|filter| &*filter.patterns)
    }

    /// Approximate memory use; shared patterns count each time.
    pub(super) fn bytes(&self) -> usize {
        let filters = self.0.iter();
        filters
            .map(|filter| FILTER_BYTES + patterns_bytes(&filter.patterns))
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
        let mut filters = Filters::since(1, DateTime::UNIX_EPOCH, &patterns(1));
        let before = filters.bytes();
        (2..100_000).for_each(|since| filters.push(since, DateTime::UNIX_EPOCH, &patterns(1)));
        assert_eq!((filters.bytes(), filters.began()), (before, Some(1)));
    }

    proptest! {
        #[test]
        fn however_often_they_change_nothing_that_was_wanted_is_lost(
            given in prop::collection::vec(any::<u8>(), 1..400),
        ) {
            let mut filters = Filters::default();
            for (since, one) in (1..).zip(&given) {
                filters.push(since, DateTime::UNIX_EPOCH, &patterns(*one));
                prop_assert!(filters.bytes() <= MAX_BYTES);
            }
            prop_assert_eq!(filters.began(), Some(1));
            for (since, one) in (1..).zip(&given) {
                let wanted = filters.in_force(When::Behind(since + 1)).unwrap();
                let event = format!("custom.{one}");
                prop_assert!(any_matches(wanted, &event));
            }
            let last = patterns(given[given.len() - 1]);
            prop_assert_eq!(filters.in_force(When::Behind(u64::MAX)), Some(&last[..]));
        }
    }
}
