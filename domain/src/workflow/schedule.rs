//! Recurring times in cron's notation.
//!
//! Clock changes are handled as in Vixie cron. Where the clock jumps over a time, a fixed-hour job
//! runs at the first moment after the jump, an interval job skips it. Where the clock shows a time
//! twice, a fixed-hour job runs at the first, an interval job at both.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
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
        let next = self.cron.find_next_occurrence(&local, false).ok()?;
        Some(next.with_timezone(&Utc))
    }

    /// The last time at or before `time`.
    pub fn last_at(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let local = time.with_timezone(&self.zone);
        let last = self.cron.find_previous_occurrence(&local, true).ok()?;
        Some(last.with_timezone(&Utc))
    }
}

#[cfg(test)]
mod tests {
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
