//! The next times at which the clock sets workflows off.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::{OrgId, WorkflowId};

use super::workflows::Scheduled;

/// The machine's clock may be set: a timer further away than this is checked again after this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// When a timer goes off again whose partition was not certainly owned.
const LEASE_AGAIN: TimeDelta = TimeDelta::seconds(1);

/// A time of a workflow's schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    /// When it goes off; later than it is due once it was put off.
    at: DateTime<Utc>,
    pub(super) due: DateTime<Utc>,
    pub(super) org: OrgId,
    pub(super) workflow: WorkflowId,
}

/// The next time of every schedule.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<Timer>);

impl Timers {
    /// Starts with a schedule, or with its partition's new owner: the last time that has passed
    /// since the version was saved is made up for if it was not handled; earlier ones are not. The
    /// log shows whether it was, since the run of a time has one id.
    pub(super) fn arm(&mut self, org: &OrgId, scheduled: &Scheduled, now: DateTime<Utc>) {
        let last = scheduled.schedule.last_at(now);
        let missed = last.filter(|last| *last > scheduled.saved_at);
        let due = missed.or_else(|| scheduled.schedule.next_after(now.max(scheduled.saved_at)));
        self.add(org, scheduled, due);
    }

    /// Continues after a time that was handled.
    pub(super) fn go_on(&mut self, org: &OrgId, scheduled: &Scheduled, now: DateTime<Utc>) {
        self.add(org, scheduled, scheduled.schedule.next_after(now));
    }

    fn add(&mut self, org: &OrgId, scheduled: &Scheduled, due: Option<DateTime<Utc>>) {
        if let Some(due) = due {
            self.0.insert(Timer {
                at: due,
                due,
                org: org.clone(),
                workflow: scheduled.workflow.clone(),
            });
        }
    }

    /// Puts a timer off whose partition is not certainly owned: its leases may have expired, and
    /// be claimed again before the loss is noticed. If they are lost, [`Self::retain`] drops it.
    pub(super) fn put_off(&mut self, timer: Timer, now: DateTime<Utc>) {
        let at = now + LEASE_AGAIN;
        self.0.insert(Timer { at, ..timer });
    }

    /// How long to sleep until the next timer.
    pub(super) fn until_next(&self, now: DateTime<Utc>) -> Duration {
        let next = self.0.first().map(|timer| timer.at - now);
        let next = next.map(|next| next.to_std().unwrap_or_default());
        next.map_or(LONGEST_SLEEP, |next| next.min(LONGEST_SLEEP))
    }

    /// Takes what is due.
    pub(super) fn pop_due(&mut self, now: DateTime<Utc>) -> Option<Timer> {
        if self.0.first()?.at <= now {
            self.0.pop_first()
        } else {
            None
        }
    }

    /// Drops organizations that now belong to other processes.
    pub(super) fn retain(&mut self, is_ours: impl Fn(&OrgId) -> bool) {
        self.0.retain(|timer| is_ours(&timer.org));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use domain::workflow::Schedule;
    use schemas::EventId;
    use uuid::Uuid;

    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn scheduled(saved_at: &str) -> Scheduled {
        Scheduled {
            workflow: "w".into(),
            version: 1,
            schedule: Schedule::parse("0 * * * *", "UTC").unwrap(),
            saved_at: utc(saved_at),
            saved_by: EventId(Uuid::nil()),
            notified: AtomicI64::default(),
        }
    }

    fn first(saved_at: &str, now: &str) -> DateTime<Utc> {
        let mut timers = Timers::default();
        timers.arm(&"o".into(), &scheduled(saved_at), utc(now));
        timers.0.first().unwrap().due
    }

    #[test]
    fn only_the_last_time_since_the_version_is_made_up_for() {
        let now = "2026-11-20T08:30:00Z";
        assert_eq!(
            first("2026-11-20T05:30:00Z", now),
            utc("2026-11-20T08:00:00Z")
        );
        assert_eq!(
            first("2026-11-20T08:00:00Z", now),
            utc("2026-11-20T09:00:00Z")
        );
        assert_eq!(
            first("2026-11-20T08:10:00Z", now),
            utc("2026-11-20T09:00:00Z")
        );
    }

    #[test]
    fn a_time_is_due_once() {
        let (mut timers, scheduled) = (Timers::default(), scheduled("2026-11-20T05:30:00Z"));
        let now = utc("2026-11-20T08:00:00Z");
        timers.arm(&"o".into(), &scheduled, now);
        assert!(timers.pop_due(now).is_some());
        timers.go_on(&"o".into(), &scheduled, now);
        assert!(timers.pop_due(now).is_none());
        assert_eq!(
            timers.until_next(utc("2026-11-20T08:59:50Z")),
            Duration::from_secs(10)
        );
    }

    #[test]
    fn what_is_put_off_goes_off_a_second_later_for_the_same_time() {
        let (mut timers, scheduled) = (Timers::default(), scheduled("2026-11-20T05:30:00Z"));
        let now = utc("2026-11-20T08:00:00Z");
        timers.arm(&"o".into(), &scheduled, now);
        let timer = timers.pop_due(now).unwrap();
        timers.put_off(timer, now);
        assert!(timers.pop_due(now).is_none());
        assert_eq!(timers.until_next(now), Duration::from_secs(1));
        let again = timers.pop_due(now + LEASE_AGAIN).unwrap();
        assert_eq!(again.due, now);
        timers.put_off(again, now);
        timers.retain(|_| false);
        assert_eq!(timers.until_next(now), LONGEST_SLEEP);
    }
}
