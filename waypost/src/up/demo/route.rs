//! Routes through Hamburg that the demo's family takes, back and forth for ever. A position depends
//! on the time alone, so that a restart finds people where they would have been.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// A way there and back with a rest at either end.
pub(super) struct Route {
    /// The names of its two ends.
    ends: [&'static str; 2],
    /// Its corners, as latitude and longitude.
    corners: &'static [(f64, f64)],
    /// Metres a second.
    speed: f64,
    /// Seconds of rest at either end.
    rest: f64,
}

/// Metres in a degree of latitude.
const DEGREE: f64 = 111_320.0;

impl Route {
    /// One for each member of the family.
    pub(super) const ALL: &'static [Self] = &[
        Self {
            ends: ["Home", "Workshop"],
            corners: &[
                (53.5847, 10.0126),
                (53.5832, 10.0171),
                (53.5801, 10.0196),
                (53.5763, 10.0214),
                (53.5731, 10.0252),
                (53.5702, 10.0283),
                (53.5686, 10.0301),
            ],
            speed: 8.3,
            rest: 240.0,
        },
        Self {
            ends: ["Home", "Alster"],
            corners: &[
                (53.5847, 10.0126),
                (53.5825, 10.0089),
                (53.5793, 10.0062),
                (53.5751, 10.0049),
                (53.5712, 10.0032),
                (53.5668, 10.0047),
            ],
            speed: 2.8,
            rest: 120.0,
        },
        Self {
            ends: ["Home", "School"],
            corners: &[
                (53.5847, 10.0126),
                (53.5839, 10.0078),
                (53.5822, 10.0031),
                (53.5806, 9.9996),
                (53.5790, 9.9975),
            ],
            speed: 1.3,
            rest: 300.0,
        },
        Self {
            ends: ["Home", "School"],
            corners: &[
                (53.5847, 10.0126),
                (53.5856, 10.0071),
                (53.5841, 10.0019),
                (53.5811, 9.9984),
                (53.5790, 9.9975),
            ],
            speed: 4.2,
            rest: 420.0,
        },
    ];

    /// The position that the person's phone sends at a time.
    pub(super) fn fix(&self, now: DateTime<Utc>) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit")]
        let seconds = now.timestamp_millis() as f64 / 1_000.0;
        let way = self.length() / self.speed;
        let round = 2.0 * (way + self.rest);
        let (half, into) = {
            let into = seconds.rem_euclid(round);
            let half = usize::from(into >= way + self.rest);
            (
                half,
                if half == 0 {
                    into
                } else {
                    into - way - self.rest
                },
            )
        };
        let resting = into >= way;
        let share = (into / way).min(1.0);
        let (lat, lng) = self.point(if half == 0 { share } else { 1.0 - share });
        // A receiver is never quite sure; it errs a little, and says so.
        let (north, east) = ((seconds / 17.0).sin() * 3.0, (seconds / 23.0).cos() * 3.0);
        let round_to = |value: f64| (value * 1e6).round() / 1e6;
        json!({
            "lat": round_to(lat + north / DEGREE),
            "lng": round_to(lng + east / (DEGREE * lat.to_radians().cos())),
            "accuracy": 8.0,
            "speed": if resting { 0.0 } else { self.speed },
            "place_name": resting.then(|| self.ends[1 - half]),
            "battery": (100.0 - (seconds / 600.0).rem_euclid(80.0)).round(),
        })
    }

    /// The point at a share of the way.
    fn point(&self, share: f64) -> (f64, f64) {
        let mut left = self.length() * share;
        let mut here = self.corners[0];
        for &next in &self.corners[1..] {
            let leg = metres(here, next);
            if left <= leg {
                let part = left / leg;
                let between = |from: f64, to: f64| from + (to - from) * part;
                return (between(here.0, next.0), between(here.1, next.1));
            }
            left -= leg;
            here = next;
        }
        here
    }

    fn length(&self) -> f64 {
        let legs = self.corners.windows(2);
        legs.map(|leg| metres(leg[0], leg[1])).sum()
    }
}

/// The distance between two near points.
fn metres(from: (f64, f64), to: (f64, f64)) -> f64 {
    let north = (to.0 - from.0) * DEGREE;
    let east = (to.1 - from.1) * DEGREE * from.0.to_radians().cos();
    north.hypot(east)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn nobody_jumps_and_everybody_arrives() {
        let start: DateTime<Utc> = "2026-11-21T08:00:00Z".parse().unwrap();
        for route in Route::ALL {
            let mut seen = Vec::new();
            let mut before: Option<(f64, f64)> = None;
            for second in 0..7_200 {
                let fix = route.fix(start + TimeDelta::seconds(second));
                let here = (fix["lat"].as_f64().unwrap(), fix["lng"].as_f64().unwrap());
                if let Some(before) = before {
                    assert!(
                        metres(before, here) < route.speed + 2.0,
                        "at {second}: {fix}"
                    );
                }
                before = Some(here);
                if let Some(place) = fix["place_name"].as_str() {
                    seen.push(place.to_owned());
                }
            }
            for end in route.ends {
                assert!(seen.iter().any(|place| place == end), "never at {end}");
            }
        }
    }
}
