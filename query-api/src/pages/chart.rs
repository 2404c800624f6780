//! Charts, drawn as SVG on the server: vertical bars, stacked in parts, and horizontal bars. Their
//! data can also be read as a table and downloaded as CSV.

use std::fmt::Write as _;

use minijinja::{HtmlEscape, Value, context};

use crate::exports::{Cell, Column, csv};

/// The drawing's own units. It is scaled to the available room.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 190.0;
/// Room for the figures of the axis, and for labels below.
const LEFT: f64 = 40.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 14.0;
/// One horizontal bar, with its label above it.
const LYING: f64 = 34.0;
/// Room beside a horizontal bar for its figure.
const FIGURE: f64 = 84.0;
const TICKS: u8 = 4;

/// The arrangement of the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Side by side, for ordered data.
    Standing,
    /// One below the other, for named data.
    Lying,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    /// Its label in the table.
    pub(super) label: String,
    /// The label below the bar; empty if there is no room for all.
    pub(super) short: String,
    /// The lengths of its parts, from the axis on; as many as the chart has parts.
    pub(super) parts: Vec<f64>,
    /// The text beside a horizontal bar.
    pub(super) figure: String,
    /// The table's cells after the label.
    pub(super) cells: Vec<String>,
}

/// A chart with all of its texts.
#[derive(Debug)]
pub(super) struct Chart {
    /// Its name in addresses.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// A one-sentence summary, for everyone.
    pub(super) summary: String,
    /// What to do if there is nothing to show.
    pub(super) empty: &'static str,
    pub(super) shape: Shape,
    /// The names of the bars' parts. A single part has no legend.
    pub(super) parts: &'static [&'static str],
    /// The table's headings, starting with that of the labels.
    pub(super) columns: &'static [Column],
    pub(super) bars: Vec<Bar>,
}

impl Chart {
    /// Returns the chart for a template.
    pub(super) fn shown(&self) -> Value {
        let headings = self.columns.iter().map(Column::heading);
        let rows = self.bars.iter().map(|bar| {
            context! { label => bar.label.clone(), cells => bar.cells.clone() }
        });
        context! {
            name => self.name,
            title => self.title,
            summary => self.summary.clone(),
            empty => self.empty,
            is_empty => self.longest() <= 0.0,
            parts => self.parts.to_vec(),
            columns => headings.collect::<Vec<_>>(),
            rows => rows.collect::<Vec<_>>(),
            svg => Value::from_safe_string(self.draw()),
        }
    }

    /// Returns the table as a CSV file.
    pub(super) fn to_csv(&self) -> Vec<u8> {
        let mut out = Vec::new();
        csv::write_header(self.columns, &mut out);
        for bar in &self.bars {
            let cells = bar.cells.iter().map(|cell| Cell::Text(cell));
            let row: Vec<Cell<'_>> = std::iter::once(Cell::Text(&bar.label))
                .chain(cells)
                .collect();
            csv::write_row(&row, &mut out);
        }
        out
    }

    fn longest(&self) -> f64 {
        let lengths = self.bars.iter().map(|bar| bar.parts.iter().sum::<f64>());
        lengths.fold(0.0, f64::max)
    }

    fn draw(&self) -> String {
        let drawn = match self.shape {
            Shape::Standing => self.draw_standing(),
            Shape::Lying => self.draw_lying(),
        };
        drawn.unwrap_or_default()
    }

    fn open(&self, height: f64) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
            HtmlEscape(&self.summary)
        )
    }

    fn draw_standing(&self) -> Result<String, std::fmt::Error> {
        let mut svg = self.open(HEIGHT);
        let (room, top) = (HEIGHT - BOTTOM - TOP, round_up(self.longest()));
        for tick in 0..=TICKS {
            let part = f64::from(tick) / f64::from(TICKS);
            let y = HEIGHT - BOTTOM - room * part;
            write!(
                svg,
                "<path class=\"rule\" d=\"M{LEFT} {y:.1}H{WIDTH}\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 5.0,
                y + 3.5,
                brief(top * part)
            )?;
        }
        let step = (WIDTH - LEFT) / precise(self.bars.len().max(1));
        for (nth, bar) in self.bars.iter().enumerate() {
            let x = LEFT + step * precise(nth);
            let mut foot = HEIGHT - BOTTOM;
            write!(svg, "<g><title>{}</title>", HtmlEscape(&tooltip(bar)))?;
            for (part, length) in bar.parts.iter().enumerate() {
                let height = if top > 0.0 {
                    room * length.max(0.0) / top
                } else {
                    0.0
                };
                foot -= height;
                write!(
                    svg,
                    "<rect class=\"part{part}\" x=\"{:.1}\" y=\"{foot:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                    x + step * 0.14,
                    step * 0.72
                )?;
            }
            svg.push_str("</g>");
            if !bar.short.is_empty() {
                write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                    x + step / 2.0,
                    HEIGHT - 7.0,
                    HtmlEscape(&bar.short)
                )?;
            }
        }
        svg.push_str("</svg>");
        Ok(svg)
    }

    fn draw_lying(&self) -> Result<String, std::fmt::Error> {
        let mut svg = self.open(LYING * precise(self.bars.len().max(1)));
        let (room, longest) = (WIDTH - FIGURE, self.longest());
        for (nth, bar) in self.bars.iter().enumerate() {
            let y = LYING * precise(nth);
            let mut x = 0.0;
            write!(
                svg,
                "<g><title>{}</title><text x=\"0\" y=\"{:.0}\">{}</text>",
                HtmlEscape(&tooltip(bar)),
                y + 12.0,
                HtmlEscape(&shortened(&bar.short))
            )?;
            for (part, length) in bar.parts.iter().enumerate() {
                let width = if longest > 0.0 {
                    room * length.max(0.0) / longest
                } else {
                    0.0
                };
                write!(
                    svg,
                    "<rect class=\"part{part}\" x=\"{x:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"11\"/>",
                    y + 17.0
                )?;
                x += width;
            }
            write!(
                svg,
                "<text class=\"figure\" x=\"{:.1}\" y=\"{:.0}\">{}</text></g>",
                x + 6.0,
                y + 26.5,
                HtmlEscape(&bar.figure)
            )?;
        }
        svg.push_str("</svg>");
        Ok(svg)
    }
}

/// Returns the tooltip of a bar.
fn tooltip(bar: &Bar) -> String {
    format!("{}: {}", bar.label, bar.cells.join(", "))
}

/// Shortens a name to what fits above a bar.
fn shortened(name: &str) -> String {
    const MOST: usize = 44;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MOST - 1).collect();
    format!("{kept}…")
}

/// Returns the end of an axis for `most`: 1, 2, 4 or 8 and zeros, so that its quarters are round.
fn round_up(most: f64) -> f64 {
    if !most.is_finite() || most <= 4.0 {
        return 4.0;
    }
    let noughts = 10_f64.powf(most.log10().floor());
    let ends = [1.0, 2.0, 4.0, 8.0, 10.0].map(|end| end * noughts);
    ends.into_iter().find(|end| *end >= most).unwrap_or(most)
}

/// Formats a figure of an axis in a few characters.
fn brief(figure: f64) -> String {
    let (figure, unit) = match figure {
        1e18.. => return format!("{figure:.0e}"),
        1e15.. => (figure / 1e15, "Q"),
        1e12.. => (figure / 1e12, "T"),
        1e9.. => (figure / 1e9, "B"),
        1e6.. => (figure / 1e6, "M"),
        1e3.. => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let text = format!("{figure:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Converts a count to a length. The precision lost beyond 2^53 is not visible.
#[expect(clippy::cast_precision_loss, reason = "lengths on a screen")]
pub(super) fn precise(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(shape: Shape, bars: &[(&str, &[f64])]) -> Chart {
        let bar = |(label, parts): &(&str, &[f64])| Bar {
            label: (*label).to_owned(),
            short: (*label).to_owned(),
            parts: parts.to_vec(),
            figure: "5".to_owned(),
            cells: parts.iter().map(ToString::to_string).collect(),
        };
        Chart {
            name: "runs",
            title: "Runs",
            summary: "Runs <by> hour".to_owned(),
            empty: "Nothing yet.",
            shape,
            parts: &["Other", "Failed"],
            columns: const {
                &[
                    Column::text("hour", 1),
                    Column::integer("runs", 1),
                    Column::integer("failed", 1),
                ]
            },
            bars: bars.iter().map(bar).collect(),
        }
    }

    /// Returns the heights, or widths, of everything drawn.
    fn lengths(svg: &str, of: &str) -> Vec<f64> {
        let rects = svg.split("<rect ").skip(1);
        let length = |rect: &str| {
            let rest = rect.split_once(&format!("{of}=\""))?.1;
            rest.split('"').next()?.parse().ok()
        };
        rects.filter_map(length).collect()
    }

    #[test]
    fn parts_of_bars_are_as_long_as_their_values() {
        let chart = chart(
            Shape::Standing,
            &[("9", &[30.0, 10.0]), ("10", &[0.0, 5.0])],
        );
        let heights = lengths(&chart.draw(), " height");
        assert_eq!(heights.len(), 4);
        assert!((heights[0] - 3.0 * heights[1]).abs() < 0.3, "{heights:?}");
        assert!((heights[1] - 2.0 * heights[3]).abs() < 0.3, "{heights:?}");
        assert!(heights[2].abs() < f64::EPSILON);
    }

    #[test]
    fn bars_stay_within_the_drawing() {
        for shape in [Shape::Standing, Shape::Lying] {
            let svg = chart(shape, &[("a", &[1e30, 1e30]), ("b", &[-4.0, 0.0])]).draw();
            let room = if shape == Shape::Standing {
                HEIGHT
            } else {
                WIDTH
            };
            let of = if shape == Shape::Standing {
                " height"
            } else {
                " width"
            };
            let lengths = lengths(&svg, of);
            assert!(
                lengths.iter().all(|length| (0.0..=room).contains(length)),
                "{svg}"
            );
        }
    }

    #[test]
    fn a_chart_of_nothing_is_empty_and_can_still_be_drawn() {
        let empty = chart(Shape::Standing, &[]);
        assert!(empty.draw().ends_with("</svg>"));
        assert!(empty.shown().get_attr("is_empty").unwrap().is_true());
        assert_eq!(empty.to_csv(), b"hour,runs,failed\r\n");
    }

    #[test]
    fn texts_cannot_become_markup() {
        for shape in [Shape::Standing, Shape::Lying] {
            let svg = chart(shape, &[("<b>\"", &[1.0, 1.0])]).draw();
            assert!(!svg.contains("<b>") && svg.contains("&lt;by&gt;"), "{svg}");
        }
    }

    #[test]
    fn a_spreadsheet_runs_nothing_of_the_file() {
        let file = chart(Shape::Lying, &[("=1+1", &[1.0, 2.0])]).to_csv();
        let file = String::from_utf8(file).unwrap();
        assert_eq!(file, "hour,runs,failed\r\n'=1+1,1,2\r\n");
    }

    #[test]
    fn axes_end_at_plain_figures() {
        for (most, end) in [
            (0.0, 4.0),
            (3.0, 4.0),
            (5.0, 8.0),
            (9.0, 10.0),
            (130.0, 200.0),
            (40_000.0, 40_000.0),
        ] {
            assert!((round_up(most) - end).abs() < 1e-6, "{most}");
        }
        for (figure, text) in [
            (0.0, "0"),
            (2.5, "2.5"),
            (1_500.0, "1.5k"),
            (40_000.0, "40k"),
            (2e6, "2M"),
        ] {
            assert_eq!(brief(figure), text);
        }
    }
}
