//! Cached knowledge about searches: how many records were found, until one of them changes, and the
//! part by which a text is looked up.
//!
//! Large results take long to count exactly. A client that goes through their pages requests the
//! same count again and again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use schemas::OrgId;
use service::Share;
use sqlx::PgPool;

use super::filter::Filter;
use super::rarest::Part;
use super::turns::Turns;

/// Maximum number of cached counts, and of parts of texts. One more clears all of them.
const KEPT: usize = 10_000;

/// A search that was counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    pub(super) org: OrgId,
    pub(super) kind: &'static str,
    pub(super) state: String,
    pub(super) filter: Filter,
    pub(super) text: Option<String>,
    pub(super) at_most: Option<i64>,
}

/// Identifies a state of an organization's records of a kind: the projection saves the change that
/// led to it, in the transaction that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    sequence: i64,
    changed_at: DateTime<Utc>,
}

/// A search text among an organization's records of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Text {
    pub(super) org: OrgId,
    pub(super) kind: &'static str,
    pub(super) sought: String,
}

/// The cache, and the turns of searches that it does not answer. Clones share both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    cache: Arc<Mutex<CountCache>>,
    turns: Turns,
}

#[derive(Debug, Default)]
struct CountCache {
    counts: HashMap<Counted, (Version, i64)>,
    /// The rarest part of each text. It may be outdated, which can make the search slower, but does
    /// not change its results.
    parts: HashMap<Text, Part>,
}

impl Counts {
    /// Returns the count, if nothing has changed since.
    pub(super) fn known(&self, counted: &Counted, version: Version) -> Option<i64> {
        let known = self.lock();
        let (of, count) = known.counts.get(counted)?;
        (*of == version).then_some(*count)
    }

    pub(super) fn keep(&self, counted: Counted, version: Version, count: i64) {
        insert(&mut self.lock().counts, counted, (version, count));
    }

    /// Returns the rarest part of a text, if it is known.
    pub(super) fn part(&self, text: &Text) -> Option<Part> {
        self.lock().parts.get(text).cloned()
    }

    pub(super) fn keep_part(&self, text: Text, part: Part) {
        insert(&mut self.lock().parts, text, part);
    }

    /// Waits for a turn to search.
    pub(crate) async fn turn(
        &self,
        org: &OrgId,
        models: &PgPool,
    ) -> Result<Share<OrgId>, sqlx::Error> {
        self.turns.begin(org, models).await
    }

    fn lock(&self) -> MutexGuard<'_, CountCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds an entry. If there are too many, the others are removed.
fn insert<K: Eq + Hash, V>(known: &mut HashMap<K, V>, key: K, value: V) {
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, value);
}

impl Version {
    pub(super) fn of(sequence: Option<i64>, changed_at: Option<DateTime<Utc>>) -> Option<Self> {
        let (sequence, changed_at) = sequence.zip(changed_at)?;
        Some(Self {
            sequence,
            changed_at,
        })
    }

    /// Returns the version of the current state; `None` if no change has been saved.
    pub(super) async fn now(
        org: &OrgId,
        kind: &str,
        models: &PgPool,
    ) -> Result<Option<Self>, sqlx::Error> {
        sqlx::query_as!(
            Version,
            "SELECT sequence, changed_at FROM record_changes WHERE org_id = $1 AND kind = $2",
            org.as_str(),
            kind,
        )
        .fetch_optional(models)
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_until_something_changes() {
        let (counts, counted) = (Counts::default(), counted("a"));
        let version = |sequence| Version {
            sequence,
            changed_at: DateTime::UNIX_EPOCH,
        };
        assert_eq!(counts.known(&counted, version(1)), None);
        counts.keep(counted.clone(), version(1), 7);
        assert_eq!(counts.known(&counted, version(1)), Some(7));
        assert_eq!(counts.known(&counted, version(2)), None);
        assert_eq!(counts.known(&self::counted("b"), version(1)), None);
    }

    #[test]
    fn no_more_numbers_are_kept_than_there_may_be() {
        let counts = Counts::default();
        let version = Version {
            sequence: 1,
            changed_at: DateTime::UNIX_EPOCH,
        };
        for nth in 0..=KEPT {
            counts.keep(counted(&nth.to_string()), version, 1);
        }
        assert_eq!(counts.lock().counts.len(), 1);
    }

    fn counted(text: &str) -> Counted {
        Counted {
            org: OrgId::from("org"),
            kind: "orders",
            state: String::new(),
            filter: Filter::default(),
            text: Some(text.to_owned()),
            at_most: None,
        }
    }
}
