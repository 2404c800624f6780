use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::{AggregateType, Context, EventId, OrgId, Sealed};
use uuid::Uuid;

use super::*;

fn updated(recorded_at: DateTime<Utc>) -> Updated {
    Updated {
        user_id: AccountId(7),
        recorded_at,
        sealed: Sealed::from_ciphertext(String::new()),
    }
}

fn seen(second: i64, hidden: bool) -> Newest {
    let fix = updated(DateTime::UNIX_EPOCH + TimeDelta::seconds(second));
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

/// Some time in 2026.
fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_500) + TimeDelta::minutes(minute)
}

/// What a device sends whose clock was reset.
fn long_ago(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

/// A track whose events are stored as soon as they are written, and how many were read of it.
#[derive(Default)]
struct Sent {
    events: Vec<Recorded>,
    read: AtomicUsize,
}

impl Sent {
    fn send(&mut self, written: DateTime<Utc>, made: DateTime<Utc>) {
        let sequence = self.events.len() as u64 + 1;
        self.events.push(Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Track, "7"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: written,
            event: Event::LocationUpdated(updated(made)),
            context: Context::default(),
            receipt: None,
        });
    }

    fn last(&self) -> Recorded {
        self.events.last().unwrap().clone()
    }

    fn read(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl Track for Sent {
    async fn pages(
        &self,
        since: DateTime<Utc>,
        take: impl FnMut(Vec<Recorded>) + Send,
    ) -> Result<(), ReadError> {
        let found = self.events.iter().filter(|sent| sent.time >= since);
        let found: Vec<Recorded> = found.cloned().collect();
        self.read.fetch_add(found.len(), Ordering::Relaxed);
        found.chunks(10).map(<[Recorded]>::to_vec).for_each(take);
        Ok(())
    }

    async fn began(&self) -> Result<Option<DateTime<Utc>>, ReadError> {
        Ok(self.events.first().map(|first| first.time))
    }
}

/// A fix every five minutes for as many as this.
fn fixes(count: i64) -> Sent {
    let mut track = Sent::default();
    for nth in 0..count {
        track.send(at(nth * 5), at(nth * 5));
    }
    track
}

#[tokio::test]
async fn a_clock_that_was_reset_makes_nobody_read_a_whole_track() {
    let mut track = fixes(10_000);
    let good = track.last().time;
    for minute in 1..=3 {
        track.send(good + TimeDelta::minutes(minute), long_ago(minute));
    }
    let last = track.last();
    let newest = newest_until(&track, &last, |_| false).await.unwrap();
    assert_eq!(newest.unwrap().own.recorded_at, good);
    let overtaken = newest_time_before(&track, &last, long_ago(3)).await;
    assert_eq!(overtaken.unwrap(), Some(good));
    let read = track.read();
    assert!(read < 50, "{read} of the track were read");
}

#[tokio::test]
async fn a_track_is_read_as_far_back_as_its_newest_fix_can_be() {
    let mut track = fixes(500);
    let last = track.last();
    let since = at(1_000);
    let hidden = |made: DateTime<Utc>| made > since;
    let newest = newest_until(&track, &last, hidden).await.unwrap().unwrap();
    assert_eq!(newest.own.recorded_at, last.time);
    assert_eq!(newest.shown.unwrap().recorded_at, since);
    // What a device gathered for a day while it was away.
    track.send(last.time + TimeDelta::days(1), last.time);
    let sent = track.last();
    let overtaken = newest_time_before(&track, &sent, last.time).await;
    assert_eq!(overtaken.unwrap(), Some(last.time));
    track.read();
    let none = newest_time_before(&track, &sent, last.time + TimeDelta::minutes(1)).await;
    assert_eq!(none.unwrap(), None);
}

#[tokio::test]
async fn of_a_clock_that_never_was_right_the_latest_time_counts() {
    let mut track = Sent::default();
    for minute in 1..=200 {
        track.send(at(minute * 5), long_ago(minute));
    }
    let last = track.last();
    let newest = newest_until(&track, &last, |_| false).await.unwrap();
    assert_eq!(newest.unwrap().own.recorded_at, long_ago(200));
    let overtaken = newest_time_before(&track, &last, long_ago(200)).await;
    assert_eq!(overtaken.unwrap(), None);
    let overtaken = newest_time_before(&track, &last, long_ago(150)).await;
    assert_eq!(overtaken.unwrap(), Some(long_ago(199)));
}
