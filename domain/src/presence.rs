//! When a person enters a place and when they leave it.
//!
//! A fix is never exact, so a person at a place's edge seems to enter and leave with every one.
//! Entering is reported at once; leaving only when the fix is beyond the radius by more than its
//! own accuracy and a margin.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The Earth's mean radius in metres.
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A place that a circle watches, as it is sealed in `circle.place_added`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Its centre's latitude in degrees.
    pub lat: f64,
    /// Its centre's longitude in degrees.
    pub lng: f64,
    /// Its radius, in metres.
    pub radius_m: f64,
}

/// Where a person was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// The latitude in degrees.
    pub lat: f64,
    /// The longitude in degrees.
    pub lng: f64,
    /// By how many metres it may be wrong, if the sender knows.
    pub accuracy: Option<f64>,
    /// When it was made.
    pub recorded_at: DateTime<Utc>,
}

/// A crossing of a place's edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// The person entered.
    Entered,
    /// The person left.
    Left,
}

/// The last reported crossing of one person at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCrossing {
    /// Its direction.
    pub crossing: Crossing,
    /// The time of the fix that showed it.
    pub recorded_at: DateTime<Utc>,
}

/// Decides whether a fix shows a crossing. `last` is the last reported one of this person and
/// place, `margin_m` the distance beyond the radius that leaving takes. A fix no newer than the
/// last reported crossing shows nothing.
pub fn decide(
    last: Option<LastCrossing>,
    place: &Place,
    fix: &Fix,
    margin_m: f64,
) -> Option<Crossing> {
    if last.is_some_and(|last| fix.recorded_at <= last.recorded_at) {
        return None;
    }
    let distance = distance_m((place.lat, place.lng), (fix.lat, fix.lng));
    let is_inside = last.is_some_and(|last| last.crossing == Crossing::Entered);
    let doubt = fix.accuracy.unwrap_or_default().max(0.0);
    if is_inside {
        (distance - doubt > place.radius_m + margin_m).then_some(Crossing::Left)
    } else {
        (distance <= place.radius_m).then_some(Crossing::Entered)
    }
}

/// The distance between two points given as latitude and longitude in degrees, along a great
/// circle (haversine).
pub fn distance_m(from: (f64, f64), to: (f64, f64)) -> f64 {
    let (lat_from, lat_to) = (from.0.to_radians(), to.0.to_radians());
    let half_lat = ((lat_to - lat_from) / 2.0).sin();
    let half_lng = ((to.1 - from.1).to_radians() / 2.0).sin();
    let square = half_lat * half_lat + lat_from.cos() * lat_to.cos() * half_lng * half_lng;
    // Rounding may lift the square of opposite points above one.
    2.0 * EARTH_RADIUS_M * square.clamp(0.0, 1.0).sqrt().asin()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MARGIN_M: f64 = 25.0;
    const RADIUS_M: f64 = 100.0;

    fn place() -> Place {
        Place {
            name: "School".to_owned(),
            lat: 52.5,
            lng: 13.4,
            radius_m: RADIUS_M,
        }
    }

    /// A fix the given number of metres north of the place's centre.
    fn fix(second: i64, north_m: f64, accuracy: Option<f64>) -> Fix {
        Fix {
            lat: 52.5 + (north_m / EARTH_RADIUS_M).to_degrees(),
            lng: 13.4,
            accuracy,
            recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
        }
    }

    /// The crossings reported from one fix to the next.
    fn crossings(fixes: impl IntoIterator<Item = Fix>) -> Vec<Crossing> {
        let (mut last, mut all) = (None, Vec::new());
        for fix in fixes {
            if let Some(crossing) = decide(last, &place(), &fix, MARGIN_M) {
                all.push(crossing);
                let recorded_at = fix.recorded_at;
                last = Some(LastCrossing {
                    crossing,
                    recorded_at,
                });
            }
        }
        all
    }

    use Crossing::{Entered, Left};

    #[test]
    fn entering_is_reported_at_once_and_leaving_beyond_the_margin() {
        let reported = crossings([
            fix(1, 500.0, None),
            fix(2, 99.0, Some(80.0)),
            fix(3, 101.0, None),
            fix(4, 124.0, None),
            fix(5, 126.0, None),
        ]);
        assert_eq!(reported, [Entered, Left]);
    }

    #[test]
    fn a_fix_that_may_be_wrong_by_as_much_does_not_show_leaving() {
        assert_eq!(
            crossings([fix(1, 0.0, None), fix(2, 300.0, Some(180.0))]),
            [Entered]
        );
        assert_eq!(
            crossings([fix(1, 0.0, None), fix(2, 300.0, Some(170.0))]),
            [Entered, Left]
        );
    }

    #[test]
    fn a_fix_from_before_the_last_crossing_shows_nothing() {
        let fixes = [fix(5, 0.0, None), fix(4, 900.0, None), fix(5, 900.0, None)];
        assert_eq!(crossings(fixes), [Entered]);
    }

    #[test]
    fn distances_are_those_of_the_earth() {
        let (berlin, munich) = ((52.520_008, 13.404_954), (48.137_154, 11.576_124));
        let distance = distance_m(berlin, munich);
        assert!((504_000.0..505_000.0).contains(&distance), "{distance}");
        let over_the_date_line = distance_m((0.0, 179.999), (0.0, -179.999));
        assert!((222.0..223.0).contains(&over_the_date_line));
        let opposite = distance_m((0.0, 0.0), (0.0, 180.0));
        assert!((20_015_000.0..20_016_000.0).contains(&opposite));
    }

    proptest! {
        /// A person who stays within the radius, with fixes no less accurate than stated, enters
        /// at most once and never leaves.
        #[test]
        fn honest_jitter_does_not_flap(
            at in 0.0..RADIUS_M,
            errors in vec((-1.0..1.0_f64, 0.0..400.0_f64), 0..60),
        ) {
            let fixes = errors.into_iter().zip(1_i64..).map(|((share, accuracy), second)| {
                fix(second, at + share * accuracy, Some(accuracy))
            });
            prop_assert!(crossings(fixes).len() <= 1);
        }

        /// The same where fixes do not state their accuracy and jitter stays within the margin.
        #[test]
        fn jitter_within_the_margin_does_not_flap(
            at in 0.0..RADIUS_M,
            errors in vec(-MARGIN_M..MARGIN_M, 0..60),
        ) {
            let fixes = errors.into_iter().zip(1_i64..);
            let fixes = fixes.map(|(error, second)| fix(second, at + error, None));
            prop_assert!(crossings(fixes).len() <= 1);
        }

        /// Nobody enters twice without leaving, whatever the fixes and however late they are.
        #[test]
        fn coming_and_going_take_turns(fixes in vec((0_i64..50, 0.0..400.0_f64), 0..80)) {
            let reported = crossings(fixes.into_iter().map(|(second, at)| fix(second, at, None)));
            for (nth, crossing) in reported.into_iter().enumerate() {
                prop_assert_eq!(crossing, if nth % 2 == 0 { Entered } else { Left });
            }
        }
    }
}
