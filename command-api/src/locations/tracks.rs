//! The fixes that a person sent recently, kept in memory so that an update needs no read before its
//! write.
//!
//! A repeated fix is found by its time. The log records when it received an event, which is never
//! much before the fix was made. So only the part of a person's past since then has to be searched,
//! which is next to nothing for current fixes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use domain::location::CLOCKS_APART;
use event_log::{EventLog, ReadError};
use schemas::{AccountId, Event, Receipt, Recorded, StreamId};

/// Most fixes kept of one person.
const MOST_FIXES: usize = 2_048;
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

/// The known part of a person's track.
pub(super) struct KnownTrack {
    /// The sequence of its last event.
    pub(super) last: Option<u64>,
    /// Everything that the log received since then is here.
    since: DateTime<Utc>,
    fixes: BTreeMap<DateTime<Utc>, Sent>,
}

/// How a fix was sent.
struct Sent {
    at: DateTime<Utc>,
    receipt: Option<Receipt>,
}

impl KnownTrack {
    pub(super) fn reaches(&self, since: DateTime<Utc>) -> bool {
        self.since <= since
    }

    pub(super) async fn load(
        log: &EventLog,
        account: AccountId,
        since: DateTime<Utc>,
    ) -> Result<Self, ReadError> {
        let stream = StreamId::of_track(account);
        let last = log.last(&stream).await?;
        let events = match &last {
            // Searching the log by time costs more than reading one event.
            Some(last) if last.time + CLOCKS_APART >= since => {
                log.load_since(&stream, since).await?
            }
            _ => Vec::new(),
        };
        let last = events.last().or(last.as_ref()).map(|last| last.sequence);
        let fixes = events.into_iter().filter_map(Self::sent).collect();
        Ok(Self { last, since, fixes })
    }

    fn sent(recorded: Recorded) -> Option<(DateTime<Utc>, Sent)> {
        let Event::LocationUpdated(updated) = recorded.event else {
            return None;
        };
        let (at, receipt) = (recorded.time, recorded.receipt);
        Some((updated.recorded_at, Sent { at, receipt }))
    }

    pub(super) fn has(&self, fix: DateTime<Utc>) -> bool {
        self.fixes.contains_key(&fix)
    }

    /// The fixes that came with an `Idempotency-Key`, in the order of their times, and the rest of
    /// its receipt.
    pub(super) fn sent_with<'k>(
        &'k self,
        key: &'k str,
    ) -> impl Iterator<Item = (DateTime<Utc>, DateTime<Utc>, &'k Receipt)> {
        self.fixes.iter().filter_map(move |(fix, sent)| {
            let receipt = sent.receipt.as_ref();
            let receipt = receipt.filter(|receipt| receipt.key == key)?;
            Some((*fix, sent.at, receipt))
        })
    }

    /// Records fixes that were just appended, the last of them at sequence `last`.
    pub(super) fn append(
        &mut self,
        fixes: impl Iterator<Item = DateTime<Utc>>,
        at: DateTime<Utc>,
        receipt: Option<&Receipt>,
        last: u64,
    ) {
        self.last = Some(last);
        for fix in fixes {
            let receipt = receipt.cloned();
            self.fixes.insert(fix, Sent { at, receipt });
        }
        if self.fixes.len() > MOST_FIXES {
            self.drop_older_half();
        }
    }

    fn drop_older_half(&mut self) {
        let mut times: Vec<_> = self.fixes.values().map(|sent| sent.at).collect();
        let (_, middle, _) = times.select_nth_unstable(MOST_FIXES / 2);
        let middle = *middle;
        self.fixes.retain(|_, sent| sent.at > middle);
        // The log's own clock may have been behind.
        self.since = self.since.max(middle + CLOCKS_APART);
    }
}

#[cfg(test)]
mod tests {
    use domain::location::taken_since;

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    #[test]
    fn what_is_dropped_is_not_taken_for_unsent() {
        let mut known = KnownTrack {
            last: None,
            since: at(-600),
            fixes: BTreeMap::new(),
        };
        for second in 0..5_000_i64 {
            let sequence = second.unsigned_abs();
            known.append([at(second)].into_iter(), at(second), None, sequence);
        }
        assert!(known.fixes.len() <= MOST_FIXES);
        for second in 0..5_000 {
            let fix = at(second);
            assert!(
                known.has(fix) || !known.reaches(taken_since(fix)),
                "{second}"
            );
        }
        assert!(known.reaches(taken_since(at(5_000))));
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
