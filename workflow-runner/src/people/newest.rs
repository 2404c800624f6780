//! A person's newest fix, read from the end of their track: a start of this process reads only as
//! much of the log as there are persons somebody asks for, not all positions of all.

use std::future::Future;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::location::{CLOCKS_APART, taken_since};
use event_log::{EventLog, ReadError};
use schemas::location::Updated;
use schemas::{AccountId, Event, Recorded, StreamId};

/// How far to look back at first, and how much further then, for a fix that others may see.
const FURTHER_BACK: TimeDelta = TimeDelta::minutes(30);

/// A person's newest fixes. A late one never replaces a newer one.
#[derive(Clone, Debug)]
pub struct Newest {
    /// For the person themselves.
    pub own: Arc<Updated>,
    /// The newest that was not made while hiding, which others may see.
    pub shown: Option<Arc<Updated>>,
}

impl Newest {
    /// The first fix that is known; `hidden` says whether it was made while its person was hiding.
    pub fn of(fix: Arc<Updated>, hidden: bool) -> Self {
        Self {
            shown: (!hidden).then(|| fix.clone()),
            own: fix,
        }
    }

    /// Takes in other fixes of the same person.
    pub fn take(&mut self, other: Self) {
        if other.own.recorded_at > self.own.recorded_at {
            self.own = other.own;
        }
        let is_newer = |fix: &Arc<Updated>| {
            let shown = self.shown.as_ref();
            shown.is_none_or(|shown| fix.recorded_at > shown.recorded_at)
        };
        if other.shown.as_ref().is_some_and(is_newer) {
            self.shown = other.shown;
        }
    }
}

/// A person's track in the log, which may be of any length: it is read page by page.
trait Track {
    /// Passes the events that the log stored since a time to `take`, oldest first.
    fn pages(
        &self,
        since: DateTime<Utc>,
        take: impl FnMut(Vec<Recorded>) + Send,
    ) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// When its first event was written, if there is one.
    fn began(&self) -> impl Future<Output = Result<Option<DateTime<Utc>>, ReadError>> + Send;
}

/// The track of a person.
struct TrackOf<'l> {
    log: &'l EventLog,
    stream: StreamId,
}

impl Track for TrackOf<'_> {
    async fn pages(
        &self,
        since: DateTime<Utc>,
        take: impl FnMut(Vec<Recorded>) + Send,
    ) -> Result<(), ReadError> {
        self.log.pages_since(&self.stream, since, take).await
    }

    async fn began(&self) -> Result<Option<DateTime<Utc>>, ReadError> {
        let first = self.log.first(&self.stream).await?;
        Ok(first.map(|first| first.time))
    }
}

/// How far back a track is read: a little at first, then further and further.
struct Back {
    since: DateTime<Utc>,
    further: TimeDelta,
    began: Option<DateTime<Utc>>,
}

impl Back {
    /// Far enough to know all that was made since `made`, unless that is long before it was sent: a
    /// clock may have been reset, and that says nothing of earlier fixes.
    fn new(made: DateTime<Utc>, sent: DateTime<Utc>) -> Self {
        Self {
            since: taken_since(made.max(sent - FURTHER_BACK)),
            further: FURTHER_BACK,
            began: None,
        }
    }

    /// Whether everything made since this time is known.
    fn includes(&self, made: DateTime<Utc>) -> bool {
        taken_since(made) >= self.since
    }

    /// Goes further back; returns whether there is more to read.
    async fn go_on(&mut self, track: &impl Track) -> Result<bool, ReadError> {
        if self.began.is_none() {
            self.began = track.began().await?;
        }
        let is_all = |began: DateTime<Utc>| self.since + CLOCKS_APART <= began;
        if self.began.is_none_or(is_all) {
            return Ok(false);
        }
        self.since -= self.further;
        self.further = self.further * 2;
        Ok(true)
    }
}

/// Finds a person's newest fixes; `hidden` says whether the person was hiding at a time.
pub(super) async fn newest(
    log: &EventLog,
    account: AccountId,
    hidden: impl Fn(DateTime<Utc>) -> bool + Sync,
) -> Result<Option<Newest>, ReadError> {
    let stream = StreamId::of_track(account);
    let Some(last) = log.last(&stream).await? else {
        return Ok(None);
    };
    newest_until(&TrackOf { log, stream }, &last, hidden).await
}

/// The newest fixes of a track that ends with `last`.
async fn newest_until(
    track: &impl Track,
    last: &Recorded,
    hidden: impl Fn(DateTime<Utc>) -> bool + Sync,
) -> Result<Option<Newest>, ReadError> {
    let made = fix(last).map_or(last.time, |fix| fix.recorded_at);
    let mut back = Back::new(made.min(last.time), last.time);
    loop {
        let mut newest: Option<Newest> = None;
        let take = |page: Vec<Recorded>| {
            for fix in page.into_iter().filter_map(into_fix) {
                let hidden = hidden(fix.recorded_at);
                let seen = Newest::of(Arc::new(fix), hidden);
                match &mut newest {
                    Some(newest) => newest.take(seen),
                    None => newest = Some(seen),
                }
            }
        };
        track.pages(back.since, take).await?;
        let shown = newest.as_ref().and_then(|newest| newest.shown.as_ref());
        // If no fix that others may see was made lately, the newest may be anywhere before.
        if shown.is_some_and(|shown| back.includes(shown.recorded_at)) || !back.go_on(track).await?
        {
            return Ok(newest);
        }
    }
}

/// The time of the newest fix that the log received before this one, if it is not older: then this
/// one came late.
pub(crate) async fn overtaken_by(
    log: &EventLog,
    recorded: &Recorded,
    updated: &Updated,
) -> Result<Option<DateTime<Utc>>, ReadError> {
    let stream = StreamId::of_track(updated.user_id);
    newest_time_before(&TrackOf { log, stream }, recorded, updated.recorded_at).await
}

async fn newest_time_before(
    track: &impl Track,
    recorded: &Recorded,
    made: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, ReadError> {
    let mut back = Back::new(made.min(recorded.time), recorded.time);
    loop {
        let mut newest: Option<DateTime<Utc>> = None;
        let take = |page: Vec<Recorded>| {
            let before = page.iter().filter(|one| one.sequence < recorded.sequence);
            let times = before.filter_map(fix).map(|fix| fix.recorded_at);
            newest = newest.max(times.max());
        };
        track.pages(back.since, take).await?;
        let is_known = back.includes(made) || newest.is_some_and(|newest| back.includes(newest));
        if is_known || !back.go_on(track).await? {
            return Ok(newest.filter(|newest| *newest >= made));
        }
    }
}

fn into_fix(recorded: Recorded) -> Option<Updated> {
    match recorded.event {
        Event::LocationUpdated(updated) => Some(updated),
        _ => None,
    }
}

fn fix(recorded: &Recorded) -> Option<&Updated> {
    match &recorded.event {
        Event::LocationUpdated(updated) => Some(updated),
        _ => None,
    }
}

#[cfg(test)]
#[path = "newest_tests.rs"]
mod tests;
