//! Plots over the time of a run, as SVG embedded in the page.

use std::fmt::Write as _;

const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 140.0;
/// Space to the left of a plot, for the greatest value.
const LEFT: f64 = 60.0;
/// Space to the right, for half of the last time label.
const RIGHT: f64 = 25.0;
/// Space below, for times.
const BELOW: f64 = 18.0;
/// Number of times named below a plot.
const TICKS: u32 = 10;

/// A time in which something was hurt.
pub(super) struct Band {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Text shown when pointing at it.
    pub(super) title: String,
}

/// Named values over time, in seconds since the run began.
pub(super) struct Series {
    /// CSS class by which the page's style colours it.
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// The time that all plots of a page share.
pub(super) struct Plots {
    pub(super) seconds: f64,
    pub(super) bands: Vec<Band>,
}

impl Plots {
    /// Bars of one second each, every series stacked on the one before. All have the same times.
    pub(super) fn bars(&self, series: &[Series]) -> String {
        let times = series.iter().map(|one| one.points.len()).max();
        let height = |one: &Series, nth: usize| one.points.get(nth).map_or(0.0, |point| point.1);
        let sum = |nth| series.iter().map(|one| height(one, nth)).sum::<f64>();
        let most = (0..times.unwrap_or_default()).map(sum).fold(0.0, f64::max);
        let mut drawn = String::new();
        for nth in 0..times.unwrap_or_default() {
            let mut below = 0.0;
            for one in series {
                let Some((at, value)) = one.points.get(nth) else {
                    continue;
                };
                if *value > 0.0 {
                    let (left, right) = (self.x(*at), self.x(at + 1.0));
                    let top = y(below + value, most);
                    let tall = y(below, most) - top;
                    let wide = (right - left).max(0.5);
                    let _ = write!(
                        drawn,
                        r#"<rect class="{}" x="{left:.1}" y="{top:.1}" width="{wide:.1}" height="{tall:.1}"/>"#,
                        one.class
                    );
                }
                below += value;
            }
        }
        self.framed(most, &drawn)
    }

    /// Lines through points. A line is broken at gaps without points.
    pub(super) fn lines(&self, series: &[Series]) -> String {
        const GAP: f64 = 2.5;
        let values = series.iter().flat_map(|one| &one.points);
        let most = values.map(|point| point.1).fold(0.0, f64::max);
        let mut drawn = String::new();
        for one in series {
            let mut path = String::new();
            let mut last = f64::NEG_INFINITY;
            for (at, value) in &one.points {
                let step = if at - last > GAP { 'M' } else { 'L' };
                let _ = write!(path, "{step}{:.1} {:.1}", self.x(*at), y(*value, most));
                last = *at;
            }
            let _ = write!(drawn, r#"<path class="{}" d="{path}"/>"#, one.class);
        }
        self.framed(most, &drawn)
    }

    fn framed(&self, most: f64, drawn: &str) -> String {
        let (wide, tall) = (LEFT + WIDTH + RIGHT, HEIGHT + BELOW);
        let mut svg = format!(r#"<svg viewBox="0 0 {wide} {tall}" role="img">"#);
        for band in &self.bands {
            let (left, right) = (self.x(band.from), self.x(band.to));
            let wide = (right - left).max(1.0);
            let title = super::page::escaped(&band.title);
            let _ = write!(
                svg,
                r#"<rect class="band" x="{left:.1}" y="0" width="{wide:.1}" height="{HEIGHT}"><title>{title}</title></rect>"#
            );
        }
        svg.push_str(drawn);
        let _ = write!(
            svg,
            r#"<path class="axis" d="M{LEFT} 0V{HEIGHT}h{WIDTH}"/><text class="most" x="{}" y="12">{most:.0}</text>"#,
            LEFT - 6.0
        );
        for nth in 0..=TICKS {
            let at = self.seconds * f64::from(nth) / f64::from(TICKS);
            let (x, y) = (self.x(at), tall - 4.0);
            let _ = write!(svg, r#"<text x="{x:.1}" y="{y}">{at:.0} s</text>"#);
        }
        svg.push_str("</svg>");
        svg
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + WIDTH * (at / self.seconds.max(1.0)).clamp(0.0, 1.0)
    }
}

fn y(value: f64, most: f64) -> f64 {
    HEIGHT * (1.0 - value / most.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plots() -> Plots {
        Plots {
            seconds: 100.0,
            bands: vec![Band {
                from: 10.0,
                to: 20.0,
                title: "kill <NATS>".to_owned(),
            }],
        }
    }

    #[test]
    fn a_band_is_drawn_at_its_time_and_titled_with_what_happened() {
        let svg = plots().lines(&[]);
        assert!(svg.contains(r#"x="160.0" y="0" width="100.0""#), "{svg}");
        assert!(svg.contains("<title>kill &lt;NATS&gt;</title>"), "{svg}");
    }

    #[test]
    fn a_line_is_broken_where_nothing_was_seen() {
        let points = vec![(0.0, 0.0), (1.0, 5.0), (50.0, 10.0)];
        let class = "lag";
        let svg = plots().lines(&[Series { class, points }]);
        assert!(svg.contains("M60.0 140.0L70.0 70.0M560.0 0.0"), "{svg}");
    }

    #[test]
    fn bars_are_stacked() {
        let of = |class, value| Series {
            class,
            points: vec![(0.0, value)],
        };
        let svg = plots().bars(&[of("one", 3.0), of("two", 1.0)]);
        assert!(svg.contains(r#"class="one" x="60.0" y="35.0""#), "{svg}");
        assert!(svg.contains(r#"class="two" x="60.0" y="0.0""#), "{svg}");
    }
}
