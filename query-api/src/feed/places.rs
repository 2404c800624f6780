//! Limits on the number of concurrent readers of feeds.
//!
//! A reader costs a consumer on the log's server and the data read ahead for it. So there are
//! places: a number per process, shared by organization so that there is always one for a newcomer,
//! and a number of those per key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use access::Caller;
use axum::http::{HeaderValue, StatusCode, header};
use schemas::{KeyId, Log, OrgId};
use service::outflow::StreamLimits;
use service::{HttpError, Share, Shares};

use super::end::End;
use super::kept::KeptSharings;
use super::settings::FeedSettings;

/// Readers that begin concurrently. Beginning makes the log's server count what there is to read.
/// The more there is, the longer that takes, and all others wait for it meanwhile.
const BEGIN_AT_ONCE: usize = 4;
/// Readers that read everybody's positions for an organization with many members. Each of them
/// makes the log's server send every position, and this program decode it.
const SCAN_AT_ONCE: usize = 16;
/// Maximum duration of a turn to read. If the log does not answer, no one waits for it.
pub(super) const TURN: Duration = Duration::from_millis(250);
/// When a place may be free again: readers of lines come and go.
const TRY_AGAIN_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// The feeds of a process. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Feeds {
    settings: FeedSettings,
    readers: Shares<OrgId>,
    beginning: Shares<OrgId>,
    turns: Turns,
    sharings: KeptSharings,
    ends: Arc<Ends>,
    of_key: Arc<Mutex<HashMap<KeyId, usize>>>,
}

/// The known ends of the logs.
#[derive(Debug, Default)]
struct Ends {
    events: End,
    locations: End,
    deliveries: End,
}

/// What readers share while they read. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Readers that catch up take turns: one fewer at a time than there are processors, and half of
    /// them for one organization. Past events are sent as fast as they can be read, to any number
    /// of readers, and everything else has to continue meanwhile.
    catching_up: Shares<OrgId>,
    /// Readers of everybody's positions.
    scanning: Shares<OrgId>,
}

/// The organization already has all the readers of everybody's positions that it may have.
#[derive(Debug, thiserror::Error)]
#[error(
    "too many feeds of positions with many members are open, in all or by this organization: close \
     one, or try again in a moment"
)]
pub(super) struct Crowded;

/// A reader's place; dropping it gives it back.
pub(super) struct ReaderPlace {
    _share: Share<OrgId>,
    feeds: Feeds,
    key: KeyId,
}

impl Feeds {
    pub(crate) fn new(settings: FeedSettings) -> Self {
        Self {
            readers: Shares::new(settings.readers),
            beginning: Shares::new(BEGIN_AT_ONCE),
            turns: Turns::new((background::processors() - 1).max(1)),
            sharings: KeptSharings::default(),
            ends: Arc::default(),
            of_key: Arc::default(),
            settings,
        }
    }

    /// Returns a place for one more reader, or the reason why there is none.
    pub(super) fn enter(&self, caller: &Caller) -> Result<ReaderPlace, HttpError> {
        let per_key = self.settings.readers_per_key;
        if !self.count(&caller.key_id, per_key) {
            note_refusal("key");
            let error = format!(
                "this key already reads {per_key} feeds, which is the maximum: close one first"
            );
            let error = HttpError::new(StatusCode::TOO_MANY_REQUESTS, error);
            return Err(error.with_header(header::RETRY_AFTER, TRY_AGAIN_SECONDS));
        }
        let Some(share) = self.readers.try_enter(&caller.org) else {
            self.uncount(&caller.key_id);
            note_refusal("process");
            let error = "too many feeds are open, in all or by this organization: close one, or try \
                         again in a moment";
            let error = HttpError::unavailable(error);
            return Err(error.with_header(header::RETRY_AFTER, TRY_AGAIN_SECONDS));
        };
        metrics::gauge!("waypost_feed_readers").increment(1);
        Ok(ReaderPlace {
            _share: share,
            feeds: self.clone(),
            key: caller.key_id.clone(),
        })
    }

    /// Waits for a turn to begin.
    pub(super) async fn begin(&self, org: &OrgId) -> Share<OrgId> {
        self.beginning.enter(org.clone()).await
    }

    /// Returns what readers share while they read.
    pub(super) fn turns(&self) -> Turns {
        self.turns.clone()
    }

    /// Returns what is known about who may be seen.
    pub(super) fn sharings(&self) -> &KeptSharings {
        &self.sharings
    }

    /// Returns the known end of a log.
    pub(super) fn end(&self, log: Log) -> &End {
        match log {
            Log::Events => &self.ends.events,
            Log::Locations => &self.ends.locations,
            Log::Deliveries => &self.ends.deliveries,
        }
    }

    /// Returns how long feeds wait for their readers.
    pub(super) fn stream_limits(&self) -> StreamLimits {
        StreamLimits {
            kind: "feed",
            stall: self.settings.stall,
            least_rate: self.settings.least_rate,
            deadline: None,
        }
    }

    /// Counts one more reader of a key, unless it has reached its limit.
    fn count(&self, key: &KeyId, per_key: usize) -> bool {
        let mut of_key = lock(&self.of_key);
        let readers = of_key.entry(key.clone()).or_default();
        let may = *readers < per_key;
        *readers += usize::from(may);
        may
    }

    fn uncount(&self, key: &KeyId) {
        let mut of_key = lock(&self.of_key);
        if let Some(readers) = of_key.get_mut(key) {
            *readers -= 1;
            if *readers == 0 {
                of_key.remove(key);
            }
        }
    }
}

impl Turns {
    fn new(catching_up: usize) -> Self {
        Self {
            catching_up: Shares::new(catching_up),
            scanning: Shares::new(SCAN_AT_ONCE),
        }
    }

    /// Waits for a turn to read past events.
    pub(super) async fn catch_up(&self, org: OrgId) -> Share<OrgId> {
        self.catching_up.enter(org).await
    }

    /// Returns a place to read everybody's positions.
    pub(super) fn scan(&self, org: &OrgId) -> Result<Share<OrgId>, Crowded> {
        self.scanning.try_enter(org).ok_or(Crowded)
    }
}

impl From<Crowded> for HttpError {
    fn from(crowded: Crowded) -> Self {
        note_refusal("process");
        let error = Self::unavailable(crowded.to_string());
        error.with_header(header::RETRY_AFTER, TRY_AGAIN_SECONDS)
    }
}

impl Drop for ReaderPlace {
    fn drop(&mut self) {
        metrics::gauge!("waypost_feed_readers").decrement(1);
        self.feeds.uncount(&self.key);
    }
}

fn note_refusal(of: &'static str) {
    metrics::counter!("waypost_feed_refused_total", "of" => of).increment(1);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds this lock can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_with_many_members_has_few_readers_of_positions() {
        let (turns, many) = (Turns::new(1), OrgId::from("many"));
        let mut held: Vec<_> = std::iter::from_fn(|| turns.scan(&many).ok()).collect();
        assert_eq!(held.len(), SCAN_AT_ONCE / 2);
        assert!(turns.scan(&OrgId::from("other")).is_ok());
        drop(held.pop());
        assert!(turns.scan(&many).is_ok());
    }
}
