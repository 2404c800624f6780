//! Recurring times in cron's notation.
//!
//! Clock changes are handled as in Vixie cron. A schedule whose minutes and hours are both named
//! (one, a list or a range of each) has fixed times of the day. Where the clock jumps over some of
//! them, it is due at the first moment after the jump, once for all of them; where the clock shows
//! one twice, it is due at the first. A schedule with `*` in its minutes or hours follows the real
//! clock: what the clock jumps over is skipped, and what it shows twice is due twice.

use chrono::{DateTime, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::{GapInfo, Tz};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::FieldError;

/// The zone if none is given.
pub(super) const DEFAULT_TIMEZONE: &str = "UTC";
const FIELDS: usize = 5;
const MAX_SCHEDULE: usize = 200;

/// When the clock triggers a workflow.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: Tz,
}

impl Schedule {
    /// Reads five fields and the name of a time zone; errors name `schedule` or `timezone`.
    pub fn parse(schedule: &str, timezone: &str) -> Result<Self, FieldError> {
        let wrong = |reason: String| FieldError::new("schedule", reason);
        if schedule.split_ascii_whitespace().count() != FIELDS || schedule.len() > MAX_SCHEDULE {
            let reason = "must have five fields: minute, hour, day of month, month, day of week";
            return Err(wrong(reason.to_owned()));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(schedule);
        let cron =
            cron.map_err(|error| wrong(format!("is not a valid cron expression: {error}")))?;
        let zone = timezone.parse::<Tz>().map_err(|_| {
            let reason = "must be an IANA time zone such as Europe/Berlin";
            FieldError::new("timezone", reason)
        })?;
        let read = Self { cron, zone };
        match read.next_after(DateTime::UNIX_EPOCH) {
            Some(_) => Ok(read),
            None => Err(wrong("never matches a date".to_owned())),
        }
    }

    /// The first time after `time`.
    pub fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let local = time.with_timezone(&self.zone);
        if self.has_fixed_times() {
            return self.next_fixed(&local);
        }
        let next = self.cron.find_next_occurrence(&local, false).ok()?;
        Some(next.with_timezone(&Utc))
    }

    /// The last time at or before `time`.
    pub fn last_at(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let local = time.with_timezone(&self.zone);
        if self.has_fixed_times() {
            return self.last_fixed(&local);
        }
        let last = self.cron.find_previous_occurrence(&local, true).ok()?;
        Some(last.with_timezone(&Utc))
    }

    fn has_fixed_times(&self) -> bool {
        let pattern = &self.cron.pattern;
        !pattern.minutes.from_wildcard && !pattern.hours.from_wildcard
    }

    /// Fixed times are searched on the wall clock alone, which knows no changes. They come in the
    /// same order as the moments at which they are due.
    fn next_fixed(&self, after: &DateTime<Tz>) -> Option<DateTime<Utc>> {
        let next = |wall: &NaiveDateTime| self.cron.find_next_occurrence(wall, false).ok();
        let walls = std::iter::successors(next(&after.naive_local()), next);
        let mut due = walls.filter_map(|wall| self.due(wall));
        // In the second of two same hours, the rest of the hour was due in the first.
        due.find(|due| due > after)
    }

    fn last_fixed(&self, until: &DateTime<Tz>) -> Option<DateTime<Utc>> {
        let wall = until.naive_local();
        // In the second of two same hours, the whole first one is over.
        let shown = self.zone.from_local_datetime(&wall);
        let repeated = shown.latest()? - shown.earliest()?;
        let from = wall.checked_add_signed(repeated)?;
        let first = self.cron.find_previous_occurrence(&from, true).ok();
        let before = |wall: &NaiveDateTime| self.cron.find_previous_occurrence(wall, false).ok();
        let walls = std::iter::successors(first, before);
        let mut due = walls.filter_map(|wall| self.due(wall));
        due.find(|due| due <= until)
    }

    /// When a fixed time is due: the first moment at which the clock shows it, or the first after a
    /// jump over it.
    fn due(&self, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
        let shown = self.zone.from_local_datetime(&wall).earliest();
        let after_jump = || GapInfo::new(&wall, &self.zone)?.end;
        shown.or_else(after_jump).map(|due| due.to_utc())
    }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, Timelike as _};
    use proptest::prelude::*;

    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn times(schedule: &str, timezone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule, timezone).unwrap();
        let mut at = utc(from);
        let next = || {
            at = schedule.next_after(at)?;
            Some(at.format("%m-%d %H:%M").to_string())
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn five_fields_say_when() {
        // The 21st of November 2026 is a Saturday.
        let found = times("0 9 * * 1-5", "Europe/Berlin", "2026-11-20T08:00:00Z", 2);
        assert_eq!(found, ["11-23 08:00", "11-24 08:00"]);
        let found = times("*/20 * * * *", "UTC", "2026-11-20T08:05:00Z", 3);
        assert_eq!(found, ["11-20 08:20", "11-20 08:40", "11-20 09:00"]);
        // A day of the month or one of the week, either of them.
        let found = times("0 0 1 * 0", "UTC", "2026-11-20T00:00:00Z", 3);
        assert_eq!(found, ["11-22 00:00", "11-29 00:00", "12-01 00:00"]);
    }

    #[test]
    fn the_last_time_counts_the_moment_itself() {
        let schedule = Schedule::parse("30 6 * * *", "UTC").unwrap();
        let last = |at| schedule.last_at(utc(at)).unwrap();
        assert_eq!(last("2026-11-20T06:30:00Z"), utc("2026-11-20T06:30:00Z"));
        assert_eq!(last("2026-11-20T06:29:59Z"), utc("2026-11-19T06:30:00Z"));
    }

    #[test]
    fn a_clock_that_jumps_on_skips_no_fixed_time() {
        // On the 28th of March 2027 the clock of Berlin goes from 2 to 3, which is 1 in UTC.
        let found = times("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", 2);
        assert_eq!(found, ["03-28 01:00", "03-29 00:30"]);
        let found = times("30 * * * *", "Europe/Berlin", "2027-03-28T00:00:00Z", 2);
        assert_eq!(found, ["03-28 00:30", "03-28 01:30"]);
    }

    #[test]
    fn a_clock_that_goes_back_repeats_no_fixed_time() {
        // On the 31st of October 2027 it goes from 3 to 2 again, which is 1 in UTC.
        let found = times("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", 2);
        assert_eq!(found, ["10-31 00:30", "11-01 01:30"]);
        let found = times("30 * * * *", "Europe/Berlin", "2027-10-31T00:00:00Z", 3);
        assert_eq!(found, ["10-31 00:30", "10-31 01:30", "10-31 02:30"]);
    }

    #[test]
    fn each_fixed_time_of_a_list_is_due_once_where_the_clock_changes() {
        const BERLIN: &str = "Europe/Berlin";
        const NEW_YORK: &str = "America/New_York";
        for (schedule, timezone, from, expected) in [
            // The clock of Berlin jumps from 2 to 3 at 1 in UTC, and goes back from 3 to 2 at 1.
            (
                "0 2,14 * * *",
                BERLIN,
                "2027-03-27T13:00:00Z",
                ["03-28 01:00", "03-28 12:00", "03-29 00:00"],
            ),
            (
                "0,30 2 * * *",
                BERLIN,
                "2027-03-27T12:00:00Z",
                ["03-28 01:00", "03-29 00:00", "03-29 00:30"],
            ),
            (
                "0,30 2 * * *",
                BERLIN,
                "2027-10-30T12:00:00Z",
                ["10-31 00:00", "10-31 00:30", "11-01 01:00"],
            ),
            (
                "15 1-3 * * *",
                BERLIN,
                "2027-10-30T12:00:00Z",
                ["10-30 23:15", "10-31 00:15", "10-31 02:15"],
            ),
            // That of New York jumps from 2 to 3 at 7, and goes back from 2 to 1 at 6.
            (
                "0 2,14 * * *",
                NEW_YORK,
                "2027-03-13T19:00:00Z",
                ["03-14 07:00", "03-14 18:00", "03-15 06:00"],
            ),
            (
                "0,30 1 * * *",
                NEW_YORK,
                "2027-11-06T12:00:00Z",
                ["11-07 05:00", "11-07 05:30", "11-08 06:00"],
            ),
        ] {
            let found = times(schedule, timezone, from, 3);
            assert_eq!(found, expected, "{schedule} {timezone} {from}");
        }
    }

    #[test]
    fn what_is_due_every_so_often_follows_the_real_clock() {
        let found = times("*/30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", 5);
        let in_both = ["10-31 00:00", "10-31 00:30", "10-31 01:00", "10-31 01:30"];
        assert_eq!(found[..4], in_both);
        assert_eq!(found[4], "11-01 01:00");
        let found = times("*/30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", 1);
        assert_eq!(found, ["03-29 00:00"]);
        let found = times("*/15 * * * *", "Europe/Berlin", "2027-03-28T00:40:00Z", 2);
        assert_eq!(found, ["03-28 00:45", "03-28 01:00"]);
    }

    /// What Vixie cron does, minute by minute: what the clock has jumped over is made up for at
    /// once, and where it has gone back, nothing is due until it shows something new.
    fn minute_by_minute(
        (hours, minutes): (&[u32], &[u32]),
        zone: Tz,
        (from, until): (DateTime<Utc>, DateTime<Utc>),
    ) -> Vec<DateTime<Utc>> {
        let shown = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local();
        let (mut at, mut reached, mut due) = (from, shown(from), Vec::new());
        while at < until {
            at += TimeDelta::minutes(1);
            let mut is_due = false;
            while reached < shown(at) {
                reached += TimeDelta::minutes(1);
                is_due |= hours.contains(&reached.hour()) && minutes.contains(&reached.minute());
            }
            due.extend(is_due.then_some(at));
        }
        due
    }

    /// A day of fixed times around a change of the clock.
    fn a_list_around_a_change() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Tz, DateTime<Utc>)> {
        let (berlin, new_york) = (Tz::Europe__Berlin, Tz::America__New_York);
        let change = prop::sample::select(vec![
            (berlin, utc("2027-03-28T01:00:00Z")),
            (berlin, utc("2027-10-31T01:00:00Z")),
            (new_york, utc("2027-03-14T07:00:00Z")),
            (new_york, utc("2027-11-07T06:00:00Z")),
        ]);
        let hours = prop::collection::btree_set(0_u32..6, 1..4);
        let minutes = prop::collection::btree_set(0_u32..60, 1..4);
        (hours, minutes, change).prop_map(|(hours, minutes, (zone, change))| {
            (Vec::from_iter(hours), Vec::from_iter(minutes), zone, change)
        })
    }

    proptest! {
        #[test]
        fn fixed_times_are_those_of_vixie_cron_over_changes_of_the_clock(
            (hours, minutes, zone, change) in a_list_around_a_change(),
        ) {
            let (from, until) = (change - TimeDelta::hours(6), change + TimeDelta::hours(6));
            let list = |values: &[u32]| {
                let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
                texts.join(",")
            };
            let text = format!("{} {} * * *", list(&minutes), list(&hours));
            let schedule = Schedule::parse(&text, zone.name()).unwrap();
            let expected = minute_by_minute((&hours, &minutes), zone, (from, until));
            let next = |at: &DateTime<Utc>| schedule.next_after(*at);
            let found = std::iter::successors(next(&from), next);
            let found: Vec<_> = found.take_while(|at| *at <= until).collect();
            prop_assert_eq!(&found, &expected, "{}", text);
            for minute in (0..12 * 60).step_by(7) {
                let at = from + TimeDelta::minutes(minute);
                if let Some(last) = expected.iter().rfind(|due| **due <= at) {
                    prop_assert_eq!(schedule.last_at(at), Some(*last), "{} {}", text, at);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_or_never_comes_is_named() {
        for (schedule, timezone, field) in [
            ("", "UTC", "schedule"),
            ("0 9 * *", "UTC", "schedule"),
            ("0 0 9 * * *", "UTC", "schedule"),
            ("@daily", "UTC", "schedule"),
            ("61 9 * * *", "UTC", "schedule"),
            ("0 0 31 2 *", "UTC", "schedule"),
            ("0 9 * * *", "Mars/Olympus", "timezone"),
        ] {
            let error = Schedule::parse(schedule, timezone).unwrap_err();
            assert_eq!(error.field, field, "{schedule} {timezone}: {error}");
        }
    }
}
