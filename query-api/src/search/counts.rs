//! What is known of searches: how many records were found, for as long as none of them changes, and
//! by which part of a text they are looked up.
//!
//! What is counted exactly and matches much takes long to count. Whoever looks through pages of it
//! asks for the same number again and again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use schemas::OrgId;
use sqlx::PgPool;

use super::filter::Filter;
use super::rarest::Part;

/// Numbers, and parts of texts, that are kept; with one more all are forgotten.
const KEPT: usize = 10_000;

/// What was found and counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    pub(super) org: OrgId,
    pub(super) kind: &'static str,
    pub(super) state: String,
    pub(super) filter: Filter,
    pub(super) text: Option<String>,
    pub(super) at_most: Option<i64>,
}

/// What names a state of an organization's records of a kind: the projection notes the change by
/// which it came about, in the transaction that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    sequence: i64,
    changed_at: DateTime<Utc>,
}

/// A text that is looked for among an organization's records of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Text {
    pub(super) org: OrgId,
    pub(super) kind: &'static str,
    pub(super) sought: String,
}

/// What is known; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<CountCache>>);

#[derive(Debug, Default)]
struct CountCache {
    counts: HashMap<Counted, (Version, i64)>,
    /// The rarest part of each text. It may be another one by now, and the search a slower one; what
    /// it finds is the same.
    parts: HashMap<Text, Part>,
}

impl Counts {
    /// The number, if nothing has changed since it was counted.
    pub(super) fn known(&self, counted: &Counted, version: Version) -> Option<i64> {
        let known = self.lock();
        let (of, count) = known.counts.get(counted)?;
        (*of == version).then_some(*count)
    }

    pub(super) fn keep(&self, counted: Counted, version: Version, count: i64) {
        insert(&mut self.lock().counts, counted, (version, count));
    }

    /// The rarest part of a text, where it is known.
    pub(super) fn part(&self, text: &Text) -> Option<Part> {
        self.lock().parts.get(text).cloned()
    }

    pub(super) fn keep_part(&self, text: Text, part: Part) {
        insert(&mut self.lock().parts, text, part);
    }

    fn lock(&self) -> MutexGuard<'_, CountCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps one more; where there are too many, it alone.
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

    /// The version of what can be read now; `None` where nothing has been noted.
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
