//! What persons sent recently, kept in memory so that an update needs no read before its write.
//!
//! A repeated fix is found by its time. The log records when it received an event, which is never
//! much before the fix was made. So only the part of a person's past since then has to be searched,
//! which is next to nothing for current fixes. A repeated request is found by its
//! `Idempotency-Key`, and only such a request is looked up in the log.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use domain::location::{CLOCKS_APART, Fix, taken_since};
use event_log::{EventLog, ReadError};
use schemas::{AccountId, Event, Recorded, StreamId};

use super::known_fixes::KnownFixes;
use super::used_keys::UsedKeys;

/// Persons in one generation: at most twice as many are kept.
const GENERATION: usize = 20_000;

/// The recently used tracks.
#[derive(Default)]
pub(crate) struct Tracks(Mutex<Generations>);

/// A used track moves to the young; when these are many, the old are dropped.
#[derive(Default)]
struct Generations {
    young: HashMap<AccountId, Arc<Track>>,
    old: HashMap<AccountId, Arc<Track>>,
}

/// One person's updates are taken one after another.
pub(super) type Track = tokio::sync::Mutex<Option<KnownTrack>>;

impl Tracks {
    pub(super) fn of(&self, account: AccountId) -> Arc<Track> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(track) = kept.young.get(&account) {
            return track.clone();
        }
        let track = kept.old.remove(&account).unwrap_or_default();
        if kept.young.len() >= GENERATION {
            kept.old = std::mem::take(&mut kept.young);
        }
        kept.young.insert(account, track.clone());
        track
    }
}

/// What a request needs to know of its person's track.
pub(super) struct Needed {
    now: DateTime<Utc>,
    /// The times of its fixes that have one.
    named: HashSet<DateTime<Utc>>,
    /// Whether it has an `Idempotency-Key`.
    has_key: bool,
    /// A key counts as used if that was later.
    pub(super) keys_valid_since: DateTime<Utc>,
}

impl Needed {
    pub(super) fn by(
        fixes: &[Fix],
        has_key: bool,
        keys_valid_since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            now,
            named: fixes.iter().filter_map(|fix| fix.recorded_at).collect(),
            has_key,
            keys_valid_since,
        }
    }

    /// Since when the log can have received one of its fixes.
    fn fixes_since(&self) -> DateTime<Utc> {
        let oldest = self.named.iter().copied().min();
        taken_since(oldest.unwrap_or(self.now).min(self.now))
    }

    /// Since when the track must be known.
    fn since(&self) -> DateTime<Utc> {
        let fixes_since = self.fixes_since();
        if self.has_key {
            fixes_since.min(self.keys_valid_since)
        } else {
            fixes_since
        }
    }
}

/// The known part of a person's track. Fixes and keys are kept apart: keys must be known for as
/// long as they are valid, and of those who send often, all fixes of that time would be too many.
pub(super) struct KnownTrack {
    /// The sequence of its last event.
    pub(super) last: Option<u64>,
    pub(super) fixes: KnownFixes,
    pub(super) keys: UsedKeys,
}

impl KnownTrack {
    fn new(last: Option<u64>, since: DateTime<Utc>) -> Self {
        Self {
            last,
            fixes: KnownFixes::new(since),
            keys: UsedKeys::new(since),
        }
    }

    pub(super) fn is_enough_for(&self, needed: &Needed) -> bool {
        let has_keys = !needed.has_key || self.keys.reaches(needed.keys_valid_since);
        has_keys && self.fixes.reaches(needed.fixes_since())
    }

    /// Reads as much of a track as is needed, a page at a time. Also returns which of the
    /// request's own times are in it, since an old one may be beyond what is kept.
    pub(super) async fn load(
        log: &EventLog,
        account: AccountId,
        needed: &Needed,
    ) -> Result<(Self, HashSet<DateTime<Utc>>), ReadError> {
        let stream = StreamId::of_track(account);
        let last = log.last(&stream).await?;
        let since = needed.since();
        let mut known = Self::new(last.as_ref().map(|last| last.sequence), since);
        let mut found = HashSet::new();
        // Searching the log by time costs more than reading one event.
        if last.is_some_and(|last| last.time + CLOCKS_APART >= since) {
            let take = |page: Vec<Recorded>| {
                for event in &page {
                    found.extend(known.read(event, needed));
                }
            };
            log.pages_since(&stream, since, take).await?;
        }
        Ok((known, found))
    }

    /// Reads what was written after all that is known, a page at a time: another process was
    /// faster. Returns `false` if nothing was, although a write after the last known event was
    /// refused: events that count as known were erased, or have expired.
    pub(super) async fn catch_up(
        &mut self,
        log: &EventLog,
        account: AccountId,
        needed: &Needed,
    ) -> Result<bool, ReadError> {
        let before = self.last;
        let take = |page: Vec<Recorded>| {
            for event in &page {
                self.read(event, needed);
            }
        };
        let stream = StreamId::of_track(account);
        log.pages_after(&stream, before.unwrap_or_default(), take)
            .await?;
        Ok(self.last != before)
    }

    /// Notes the next event of the log. Returns its fix if the request has one of the same time.
    fn read(&mut self, recorded: &Recorded, needed: &Needed) -> Option<DateTime<Utc>> {
        self.last = Some(recorded.sequence);
        let Event::LocationUpdated(updated) = &recorded.event else {
            return None;
        };
        let key = recorded.receipt.as_ref();
        let key = key.map(|receipt| receipt.key.as_str());
        self.note(updated.recorded_at, key, recorded.time, needed);
        Some(updated.recorded_at).filter(|fix| needed.named.contains(fix))
    }

    /// Records fixes that were just appended, the last of them at sequence `last`.
    pub(super) fn append(
        &mut self,
        fixes: impl Iterator<Item = DateTime<Utc>>,
        key: Option<&str>,
        needed: &Needed,
        last: u64,
    ) {
        self.last = Some(last);
        for fix in fixes {
            self.note(fix, key, needed.now, needed);
        }
    }

    fn note(&mut self, fix: DateTime<Utc>, key: Option<&str>, at: DateTime<Utc>, needed: &Needed) {
        self.fixes.note(fix, at, needed.now);
        if let Some(key) = key {
            self.keys.note(key, at, needed.keys_valid_since);
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use event_log::{Expected, Write};
    use schemas::location::Updated;
    use schemas::{Context, EventId, NewEvent, Receipt, Sealed};
    use uuid::Uuid;

    use super::*;
    use crate::test_log;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    /// What a request with a key needs that was sent with one fix as soon as that was made.
    fn with_key(now: DateTime<Utc>) -> Needed {
        Needed {
            now,
            named: HashSet::from([now]),
            has_key: true,
            keys_valid_since: now - TimeDelta::hours(24),
        }
    }

    fn without_key(now: DateTime<Utc>) -> Needed {
        Needed {
            has_key: false,
            ..with_key(now)
        }
    }

    fn key(number: i64) -> String {
        format!("{number:08}abcdefghijklmnopqr")
    }

    /// A fix that was made in this second, and was sent at once.
    fn recorded(second: i64) -> Recorded {
        let account = AccountId(1);
        Recorded {
            sequence: second.unsigned_abs(),
            stream: StreamId::of_track(account),
            id: EventId(Uuid::nil()),
            time: at(second),
            event: Event::LocationUpdated(Updated {
                user_id: account,
                recorded_at: at(second),
                sealed: Sealed::from_ciphertext(String::new()),
            }),
            context: Context::default(),
            receipt: Some(Receipt {
                key: key(second),
                fingerprint: String::new(),
            }),
        }
    }

    #[test]
    fn who_sends_thousands_of_fixes_a_day_each_with_a_key_needs_no_read_again() {
        let mut known = KnownTrack::new(None, with_key(at(0)).since());
        // The most that the tier `family+` allows, for two days.
        for number in 0..2 * 8_640_i64 {
            let now = at(10 * number);
            let needed = with_key(now);
            assert!(known.is_enough_for(&needed), "{number}");
            let sequence = number.unsigned_abs();
            known.append([now].into_iter(), Some(&key(number)), &needed, sequence);
        }
        let valid_since = with_key(at(20 * 8_640)).keys_valid_since;
        let used = |number: i64| known.keys.used(&key(number), valid_since);
        assert_eq!(used(8_640), None);
        assert_eq!(used(8_641), Some(at(86_410)));
        assert_eq!(used(2 * 8_640 - 1), Some(at(172_790)));
        assert_eq!(used(2 * 8_640), None);
    }

    #[test]
    fn a_key_must_be_known_for_as_long_as_it_is_valid() {
        let known = KnownTrack::new(None, without_key(at(0)).since());
        assert!(known.is_enough_for(&without_key(at(0))));
        assert!(!known.is_enough_for(&with_key(at(0))));
        let known = KnownTrack::new(None, with_key(at(0)).since());
        assert!(known.is_enough_for(&with_key(at(0))));
        assert!(known.is_enough_for(&without_key(at(0))));
    }

    #[test]
    fn an_old_fix_is_found_in_a_track_that_is_longer_than_what_is_kept() {
        let old = at(7);
        let mut needed = without_key(at(90 * 86_400));
        needed.named.insert(old);
        let mut known = KnownTrack::new(None, needed.since());
        let mut found = HashSet::new();
        for second in 0..10_000 {
            found.extend(known.read(&recorded(second), &needed));
        }
        assert_eq!(found, HashSet::from([old]));
        assert!(!known.fixes.has(old));
        assert!(!known.is_enough_for(&needed));
        assert!(known.is_enough_for(&without_key(at(90 * 86_400))));
        assert_eq!(known.last, Some(9_999));
    }

    /// Writes a fix that was made in this second, with a key of its own, after `last`. Returns its
    /// sequence.
    async fn write(log: &EventLog, account: AccountId, second: i64, last: Option<u64>) -> u64 {
        let recorded = recorded(second);
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: recorded.time,
            event: recorded.event,
            context: Context::default(),
            receipt: Some(Receipt {
                key: key(second),
                fingerprint: "f".to_owned(),
            }),
        };
        let write = Write {
            stream: StreamId::of_track(account),
            expected: Expected::after(last),
            events: vec![event],
        };
        log.commit(write.into()).await.unwrap().sequence()
    }

    #[tokio::test]
    async fn what_another_process_wrote_is_known_beside_what_was_known_before() {
        let (log, other) = (test_log::connect().await, test_log::connect().await);
        let account = AccountId(Uuid::new_v4().as_u64_pair().0 >> 12);
        let needed = with_key(at(2));
        let mut known = KnownTrack::new(None, needed.since());
        let first = write(&log, account, 1, None).await;
        known.append([at(1)].into_iter(), Some(&key(1)), &needed, first);
        let second = write(&other, account, 2, Some(first)).await;
        assert!(known.catch_up(&log, account, &needed).await.unwrap());
        assert_eq!(known.last, Some(second));
        assert!(known.is_enough_for(&needed));
        for number in [1, 2] {
            assert!(known.fixes.has(at(number)));
            let used = known.keys.used(&key(number), needed.keys_valid_since);
            assert!(used.is_some(), "{number}");
        }
    }

    #[tokio::test]
    async fn a_track_that_was_erased_does_not_catch_up() {
        let log = test_log::connect().await;
        let account = AccountId(Uuid::new_v4().as_u64_pair().0 >> 12);
        let needed = with_key(at(1));
        let mut known = KnownTrack::new(None, needed.since());
        let last = write(&log, account, 1, None).await;
        known.append([at(1)].into_iter(), Some(&key(1)), &needed, last);
        log.erase(&StreamId::of_track(account)).await.unwrap();
        assert!(!known.catch_up(&log, account, &needed).await.unwrap());
    }

    #[test]
    fn those_who_come_again_are_kept() {
        let tracks = Tracks::default();
        let first = tracks.of(AccountId(0));
        for account in 1..3 * GENERATION as u64 {
            tracks.of(AccountId(account));
            assert!(Arc::ptr_eq(&first, &tracks.of(AccountId(0))));
        }
        let kept = tracks.0.lock().unwrap();
        assert!(kept.young.len() + kept.old.len() <= 2 * GENERATION);
    }
}
