//! The span of days that a series covers, in a given time zone.

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveTime, TimeDelta, TimeZone as _, Utc,
};
use chrono_tz::Tz;
use service::HttpError;

use crate::paging::{Parameters, wrong};

/// Maximum number of steps of a series: three years of days.
const MAX_STEPS: usize = 1_100;
/// Since then every zone's offset from UTC is a whole number of quarters of an hour: the last one
/// to change to such an offset was Pacific/Kiritimati, in October 1979.
const FIRST_YEAR: i32 = 1980;
const LAST_YEAR: i32 = 9_999;
const QUARTER: TimeDelta = TimeDelta::minutes(15);

/// The length of a step of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Day,
    /// Starts on Monday.
    Week,
    Month,
}

/// Days of a time zone, first and last included.
#[derive(Debug)]
pub(super) struct Span {
    from: NaiveDate,
    to: NaiveDate,
    step: Step,
    zone: Tz,
}

/// A step of a span: its first day, and when it begins and ends.
#[derive(Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) start: NaiveDate,
    begins: DateTime<Utc>,
    ends: DateTime<Utc>,
}

/// A part of a bucket, counted in intervals of one length.
#[derive(Debug, PartialEq)]
struct Piece {
    /// The length of an interval: 15 or 1,440.
    minutes: i16,
    begins: DateTime<Utc>,
    ends: DateTime<Utc>,
}

/// The pieces of all buckets, as columns: a statement takes them as arrays.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The bucket of each, from 1 on.
    pub(super) places: Vec<i64>,
    pub(super) minutes: Vec<i16>,
    pub(super) begins: Vec<DateTime<Utc>>,
    pub(super) ends: Vec<DateTime<Utc>>,
}

impl Pieces {
    pub(super) fn of(buckets: &[Bucket]) -> Self {
        let mut pieces = Self::default();
        for (bucket, place) in buckets.iter().zip(1_i64..) {
            for piece in bucket.pieces() {
                pieces.places.push(place);
                pieces.minutes.push(piece.minutes);
                pieces.begins.push(piece.begins);
                pieces.ends.push(piece.ends);
            }
        }
        pieces
    }
}

impl Span {
    /// Returns the span that a request asks for, if any.
    pub(super) fn from_parameters(parameters: &Parameters) -> Result<Option<Self>, HttpError> {
        let (from, to) = (parameters.one("from")?, parameters.one("to")?);
        let (by, timezone) = (parameters.one("by")?, parameters.one("timezone")?);
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (day("from", from)?, day("to", to)?),
            (None, None) if by.is_none() && timezone.is_none() => return Ok(None),
            (None, _) => return Err(missing("from")),
            (_, None) => return Err(missing("to")),
        };
        if to < from {
            return Err(wrong("to", "must not be before from"));
        }
        let step = match by.unwrap_or("day") {
            "day" => Step::Day,
            "week" => Step::Week,
            "month" => Step::Month,
            _ => return Err(wrong("by", "must be day, week or month")),
        };
        let zone = timezone.unwrap_or("UTC").parse();
        let zone = zone.map_err(|_| {
            wrong(
                "timezone",
                "must be an IANA time zone such as Europe/Berlin",
            )
        })?;
        let span = Self {
            from,
            to,
            step,
            zone,
        };
        if span.starts().nth(MAX_STEPS).is_some() {
            let reason = format!(
                "the series would have more than {MAX_STEPS} steps; ask for fewer days, or by week or month"
            );
            return Err(wrong("to", &reason));
        }
        Ok(Some(span))
    }

    /// Returns its steps, oldest first. The span's ends may cut the first and the last short.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        let ends = self.to + Days::new(1);
        for start in self.starts() {
            let begins = midnight(start, self.zone);
            if let Some(before) = buckets.last_mut() {
                before.ends = begins;
            }
            let ends = midnight(ends, self.zone);
            buckets.push(Bucket {
                start,
                begins,
                ends,
            });
        }
        buckets
    }

    /// The first days of its steps.
    fn starts(&self) -> impl Iterator<Item = NaiveDate> {
        let next = |day: NaiveDate| match self.step {
            Step::Day => day.succ_opt(),
            Step::Week => day.week(chrono::Weekday::Mon).last_day().succ_opt(),
            Step::Month => day.with_day(1)?.checked_add_months(Months::new(1)),
        };
        let starts = std::iter::successors(Some(self.from), move |day| next(*day));
        starts.take_while(|day| *day <= self.to)
    }
}

impl Bucket {
    /// Returns whole days of UTC, and quarters of an hour before and after them.
    fn pieces(&self) -> Vec<Piece> {
        let day = TimeDelta::days(1);
        let first = floor(self.begins + (day - TimeDelta::nanoseconds(1)));
        let last = floor(self.ends);
        let piece = |minutes, begins, ends| Piece {
            minutes,
            begins,
            ends,
        };
        let pieces = if first < last {
            vec![
                piece(15, self.begins, first),
                piece(1_440, first, last),
                piece(15, last, self.ends),
            ]
        } else {
            vec![piece(15, self.begins, self.ends)]
        };
        let pieces = pieces.into_iter();
        pieces.filter(|piece| piece.begins < piece.ends).collect()
    }
}

/// The error for a missing parameter that every series needs.
pub(super) fn missing(name: &str) -> HttpError {
    wrong(name, "is missing: a series needs from and to")
}

/// The beginning of a time's day in UTC.
fn floor(time: DateTime<Utc>) -> DateTime<Utc> {
    time.date_naive().and_time(NaiveTime::MIN).and_utc()
}

/// Returns the first moment of a day. If the clock skips midnight, that is the moment after the
/// jump. If it shows midnight twice, it is the first one.
fn midnight(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    // A zone that moved across the date line skipped a whole day.
    let mut later = (0..=96).map(|quarters| midnight + QUARTER * quarters);
    let first = later.find_map(|local| zone.from_local_datetime(&local).earliest());
    first.map_or(midnight.and_utc(), |first| first.to_utc())
}

fn day(name: &str, text: &str) -> Result<NaiveDate, HttpError> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let day = day.filter(|day| (FIRST_YEAR..=LAST_YEAR).contains(&day.year()));
    day.ok_or_else(|| {
        let reason = format!("must be a date from {FIRST_YEAR} on, such as 2026-01-31");
        wrong(name, &reason)
    })
}

#[cfg(test)]
mod tests {
    use chrono::Offset as _;
    use chrono_tz::TZ_VARIANTS;

    use super::*;

    fn span(query: &str) -> Span {
        let uri = format!("/x?{query}").parse().unwrap();
        let span = Span::from_parameters(&Parameters::of(&uri).unwrap()).unwrap();
        span.unwrap()
    }

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn steps_follow_each_other_without_a_gap() {
        for query in [
            "from=2026-01-30&to=2026-03-02",
            "from=2026-01-30&to=2026-03-02&by=week&timezone=Asia/Kathmandu",
            "from=2026-01-30&to=2027-03-02&by=month&timezone=Europe/Berlin",
            // Samoa skipped a day, and Cuba's clocks go back at midnight.
            "from=2011-12-28&to=2012-01-02&timezone=Pacific/Apia",
            "from=2026-10-25&to=2026-11-05&timezone=America/Havana",
        ] {
            let buckets = span(query).buckets();
            for pair in buckets.windows(2) {
                assert_eq!(pair[0].ends, pair[1].begins, "{query}");
                assert!(pair[0].start < pair[1].start, "{query}");
            }
            for bucket in &buckets {
                let mut at = bucket.begins;
                for piece in bucket.pieces() {
                    let length = TimeDelta::minutes(piece.minutes.into()).num_seconds();
                    assert_eq!(piece.begins, at, "{query}");
                    assert_eq!(piece.begins.timestamp() % length, 0, "{query}");
                    assert_eq!(piece.ends.timestamp() % length, 0, "{query}");
                    at = piece.ends;
                }
                assert_eq!(at, bucket.ends, "{query}");
            }
        }
    }

    #[test]
    fn every_zone_is_whole_quarters_from_utc_since_the_first_year() {
        let first = time(&format!("{FIRST_YEAR}-01-01T00:00:00Z")).naive_utc();
        for after in (0..60 * 366).step_by(30) {
            let at = first + Days::new(after);
            for zone in &TZ_VARIANTS {
                let offset = zone.offset_from_utc_datetime(&at).fix();
                let seconds = i64::from(offset.local_minus_utc());
                assert_eq!(seconds % QUARTER.num_seconds(), 0, "{zone} at {at}");
            }
        }
    }

    #[test]
    fn a_month_is_days_and_the_quarters_about_them() {
        let buckets = span("from=2026-03-01&to=2026-03-31&by=month&timezone=Europe/Berlin");
        let piece = |minutes, begins, ends| Piece {
            minutes,
            begins: time(begins),
            ends: time(ends),
        };
        assert_eq!(
            buckets.buckets()[0].pieces(),
            [
                piece(15, "2026-02-28T23:00:00Z", "2026-03-01T00:00:00Z"),
                piece(1_440, "2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z"),
                piece(15, "2026-03-31T00:00:00Z", "2026-03-31T22:00:00Z"),
            ]
        );
    }

    #[test]
    fn a_day_that_was_left_out_is_empty() {
        let buckets = span("from=2011-12-30&to=2011-12-31&timezone=Pacific/Apia").buckets();
        assert!(buckets[0].pieces().is_empty());
        assert!(!buckets[1].pieces().is_empty());
    }
}
