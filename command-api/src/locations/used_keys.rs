//! The `Idempotency-Key`s that one person used lately. A key that is not among them needs no read;
//! for one that seems to be, the log has the receipt.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

/// Most keys kept.
const MOST_KEYS: usize = 65_536;

pub(super) struct UsedKeys {
    /// The keys of everything that the log received since then are here, up to [`MOST_KEYS`] and
    /// as long as they are valid.
    since: DateTime<Utc>,
    /// In the order of the log.
    uses: VecDeque<Use>,
}

#[derive(PartialEq, Eq)]
struct Use {
    at: DateTime<Utc>,
    key: ShortKey,
}

/// The beginning of the key of a receipt, which is a hash: two different ones are hardly ever the
/// same.
type ShortKey = [u8; 8];

impl UsedKeys {
    /// None yet, of all that the log received since then.
    pub(super) fn new(since: DateTime<Utc>) -> Self {
        Self {
            since,
            uses: VecDeque::new(),
        }
    }

    pub(super) fn reaches(&self, since: DateTime<Utc>) -> bool {
        self.since <= since
    }

    /// When the key of a receipt was first used, or another one of the same beginning, if that was
    /// after `valid_since`.
    pub(super) fn used(&self, key: &str, valid_since: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let key = short(key);
        let mut valid = self.uses.iter().filter(|used| used.at > valid_since);
        valid.find(|used| used.key == key).map(|used| used.at)
    }

    /// Notes the key of a receipt whose event follows all others in the log and was written at
    /// `at`. Drops those that have expired. If there are too many it drops the oldest, and does not
    /// count as knowing less: otherwise every update with a key would have to read the log.
    pub(super) fn note(&mut self, key: &str, at: DateTime<Utc>, valid_since: DateTime<Utc>) {
        let new = Use {
            at,
            key: short(key),
        };
        // The events of one request follow each other.
        if at <= valid_since || self.uses.back() == Some(&new) {
            return;
        }
        while let Some(oldest) = self.uses.front()
            && (oldest.at <= valid_since || self.uses.len() >= MOST_KEYS)
        {
            self.uses.pop_front();
        }
        self.uses.push_back(new);
    }
}

fn short(key: &str) -> ShortKey {
    let mut short = ShortKey::default();
    for (to, from) in short.iter_mut().zip(key.bytes()) {
        *to = from;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    /// As a hash, it differs from others at its beginning.
    fn key(number: i64) -> String {
        format!("{number:08}abcdefghijklmnopqr")
    }

    #[test]
    fn a_used_key_is_found_until_it_expires_and_another_is_not() {
        let mut keys = UsedKeys::new(at(-100));
        keys.note(&key(1), at(0), at(-100));
        keys.note(&key(2), at(10), at(-90));
        assert_eq!(keys.used(&key(1), at(-1)), Some(at(0)));
        assert_eq!(keys.used(&key(1), at(0)), None);
        assert_eq!(keys.used(&key(2), at(0)), Some(at(10)));
        assert_eq!(keys.used(&key(3), at(-100)), None);
    }

    #[test]
    fn a_key_that_was_used_again_after_it_expired_is_found() {
        let mut keys = UsedKeys::new(at(-100));
        keys.note(&key(1), at(0), at(-100));
        keys.note(&key(1), at(100), at(0));
        assert_eq!(keys.used(&key(1), at(0)), Some(at(100)));
        assert_eq!(keys.uses.len(), 1);
    }

    #[test]
    fn the_fixes_of_a_request_share_one_use() {
        let mut keys = UsedKeys::new(at(-100));
        for _ in 0..100 {
            keys.note(&key(1), at(0), at(-100));
        }
        assert_eq!(keys.uses.len(), 1);
    }

    #[test]
    fn expired_keys_are_not_held() {
        let mut keys = UsedKeys::new(at(-100));
        for second in 0..1_000 {
            keys.note(&key(second), at(second), at(second - 100));
            keys.note(&key(-1), at(second - 100), at(second - 100));
        }
        assert_eq!(keys.uses.len(), 100);
    }

    #[test]
    fn the_newest_of_too_many_keys_are_held_and_no_read_is_needed() {
        let mut keys = UsedKeys::new(at(0));
        let most = i64::try_from(MOST_KEYS).unwrap();
        for number in 0..=most {
            keys.note(&key(number), at(1 + number), at(0));
        }
        assert_eq!(keys.uses.len(), MOST_KEYS);
        assert_eq!(keys.used(&key(0), at(0)), None);
        assert_eq!(keys.used(&key(1), at(0)), Some(at(2)));
        assert_eq!(keys.used(&key(most), at(0)), Some(at(1 + most)));
        assert!(keys.reaches(at(0)));
    }
}
