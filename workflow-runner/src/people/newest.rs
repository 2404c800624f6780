//! A person's newest fix, read from the end of their track: a start of this process reads only as
//! much of the log as there are persons somebody asks for, not all positions of all.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::location::{CLOCKS_APART, taken_since};
use event_log::{EventLog, ReadError};
use schemas::location::Updated;
use schemas::{AccountId, Event, Recorded, StreamId};

/// How much further to look back, at first, for a fix that others may see.
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

/// Finds a person's newest fixes; `hidden` says whether the person was hiding at a time.
pub(super) async fn newest(
    log: &EventLog,
    account: AccountId,
    hidden: impl Fn(DateTime<Utc>) -> bool,
) -> Result<Option<Newest>, ReadError> {
    let stream = StreamId::of_track(account);
    let Some(last) = log.last(&stream).await? else {
        return Ok(None);
    };
    let mut since = taken_since(fix(&last).map_or(last.time, |fix| fix.recorded_at.min(last.time)));
    let mut further = FURTHER_BACK;
    let mut began = None;
    loop {
        let events = log.load_since(&stream, since).await?;
        let fixes = events.iter().filter_map(fix).map(|fix| {
            let hidden = hidden(fix.recorded_at);
            Newest::of(Arc::new(fix.clone()), hidden)
        });
        let newest = fixes.reduce(|mut newest, fix| {
            newest.take(fix);
            newest
        });
        let shown = newest.as_ref().and_then(|newest| newest.shown.as_ref());
        if shown.is_some_and(|shown| taken_since(shown.recorded_at) >= since) {
            return Ok(newest);
        }
        // No fix that others may see was made lately: the newest may be anywhere before.
        if began.is_none() {
            began = log.first(&stream).await?.map(|first| first.time);
        }
        if began.is_none_or(|began| since + CLOCKS_APART <= began) {
            return Ok(newest);
        }
        since -= further;
        further = further * 2;
    }
}

/// The time of the newest fix that the log received before this one, if it is not older: then this
/// one came late.
pub(crate) async fn overtaken_by(
    log: &EventLog,
    recorded: &Recorded,
    updated: &Updated,
) -> Result<Option<DateTime<Utc>>, ReadError> {
    let since = taken_since(updated.recorded_at.min(recorded.time));
    let events = log
        .load_since(&StreamId::of_track(updated.user_id), since)
        .await?;
    let before = events
        .iter()
        .filter(|event| event.sequence < recorded.sequence);
    let newest = before.filter_map(fix).map(|fix| fix.recorded_at).max();
    Ok(newest.filter(|newest| *newest >= updated.recorded_at))
}

fn fix(recorded: &Recorded) -> Option<&Updated> {
    match &recorded.event {
        Event::LocationUpdated(updated) => Some(updated),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use schemas::Sealed;

    use super::*;

    fn seen(second: i64, hidden: bool) -> Newest {
        let fix = Updated {
            user_id: AccountId(7),
            recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
            sealed: Sealed::from_ciphertext(String::new()),
        };
        Newest::of(Arc::new(fix), hidden)
    }

    fn seconds(newest: &Newest) -> (i64, Option<i64>) {
        let second = |fix: &Arc<Updated>| fix.recorded_at.timestamp();
        (second(&newest.own), newest.shown.as_ref().map(second))
    }

    #[test]
    fn a_late_fix_changes_nothing() {
        let mut newest = seen(5, false);
        for at in [9, 7] {
            newest.take(seen(at, false));
        }
        assert_eq!(seconds(&newest), (9, Some(9)));
    }

    #[test]
    fn others_see_the_newest_from_outside_of_hiding() {
        let mut newest = seen(4, true);
        assert_eq!(seconds(&newest), (4, None));
        newest.take(seen(5, false));
        newest.take(seen(8, true));
        assert_eq!(seconds(&newest), (8, Some(5)));
        newest.take(seen(6, false));
        assert_eq!(seconds(&newest), (8, Some(6)));
    }
}
