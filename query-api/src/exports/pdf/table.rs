//! The table: its column positions, headings and rows.

use std::fmt::Write as _;

use chrono::Datelike;

use super::Fonts;
use super::page::{BODY_WIDTH, Grey, Page, SIDE};
use super::typeface::Typeface;
use super::wrap::{Fit, Line, on_one_line, wrap};
use crate::exports::Title;
use crate::exports::column::{Cell, Column, Content, Kind};

const TITLE_SIZE: f32 = 16.0;
const SUBTITLE_SIZE: f32 = 9.0;
const HEADING_SIZE: f32 = 6.6;
const CELL_SIZE: f32 = 6.6;
/// Distance from one line's baseline to the next, in multiples of the font size.
const LEADING: f32 = 1.22;
/// Distance from the top of a line to its baseline, in multiples of the font size.
const ASCENT: f32 = 0.95;
/// Space above and below a cell's lines.
const PADDING: f32 = 2.2;
/// Space between two columns.
const GAP: f32 = 5.0;
/// Maximum number of lines per cell.
const MAX_LINES: usize = 5;
/// Minimum weight of a column, in characters.
const NARROWEST: f32 = 9.0;
/// Maximum weight of a column, in characters.
const WIDEST: f32 = 34.0;
/// Maximum width of an organization's name. Longer ones are shortened to leave room for the date.
const WIDEST_NAME: f32 = BODY_WIDTH * 0.6;

/// The table of one kind.
pub(super) struct Table {
    kind: &'static Kind,
    title: Title,
    footer: String,
    columns: Vec<ColumnSpan>,
    headings: Vec<String>,
    row: Row,
    rows: u64,
}

/// The position of a column.
#[derive(Clone, Copy)]
struct ColumnSpan {
    left: f32,
    width: f32,
    /// Numbers are right-aligned, so that their digits line up.
    on_the_right: bool,
}

/// A laid out row that is about to be drawn. Its memory is reused for every row.
#[derive(Default)]
struct Row {
    /// The texts of all cells, one after the other.
    text: String,
    /// The ends of each cell's text in `text`, and of its lines in `lines`.
    ends: Vec<(usize, usize)>,
    lines: Vec<Line>,
}

impl Table {
    /// Lays the columns out over the whole width.
    pub(super) fn new(kind: &'static Kind, mut title: Title, fonts: &mut Fonts) -> Self {
        title.organization = on_one_line(
            &title.organization,
            WIDEST_NAME,
            SUBTITLE_SIZE,
            &mut fonts.regular,
        );
        let headings: Vec<String> = kind.columns.iter().map(Column::heading).collect();
        let columns = places(kind, &headings, &mut fonts.bold);
        let day = title.at.format("%-d %B").to_string();
        let footer = format!(
            "{} · {} · {day} {} (UTC)",
            title.organization,
            kind.title,
            title.at.year()
        );
        Self {
            kind,
            title,
            footer,
            columns,
            headings,
            row: Row::default(),
            rows: 0,
        }
    }

    /// Whether no row has been drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the first page: title, organization, date and headings.
    pub(super) fn first_page(&self, fonts: &mut Fonts) -> Page {
        let mut page = Page::default();
        let top = page.advance(44.0);
        let baseline = top - TITLE_SIZE * ASCENT;
        page.begin_texts(&fonts.bold, TITLE_SIZE, Grey::INK);
        page.text(self.kind.title, (SIDE, baseline), &mut fonts.bold);
        page.end_texts();

        let subtitle = format!(
            "{} · as of {} UTC",
            self.title.organization,
            self.title.at.format("%-d %B %Y, %H:%M")
        );
        page.begin_texts(&fonts.regular, SUBTITLE_SIZE, Grey::FAINT);
        let at = (SIDE, baseline - 15.0);
        page.text(&subtitle, at, &mut fonts.regular);
        page.end_texts();
        self.draw_headings(&mut page, fonts);
        page
    }

    /// Returns a further page with the headings.
    pub(super) fn further_page(&self, fonts: &mut Fonts) -> Page {
        let mut page = Page::default();
        self.draw_headings(&mut page, fonts);
        page
    }

    /// Breaks a row's cells into lines. Returns the row's height.
    pub(super) fn lay_out(&mut self, cells: &[Cell<'_>], fonts: &mut Fonts) -> f32 {
        let row = &mut self.row;
        row.text.clear();
        row.ends.clear();
        row.lines.clear();
        let mut tallest = 1;
        for (cell, place) in cells.iter().zip(&self.columns) {
            let (start, first) = (row.text.len(), row.lines.len());
            push_text(*cell, &mut row.text);
            let fit = Fit {
                width: place.width,
                size: CELL_SIZE,
                max_lines: MAX_LINES,
            };
            wrap(&row.text[start..], fit, &mut fonts.regular, &mut row.lines);
            row.ends.push((row.text.len(), row.lines.len()));
            tallest = tallest.max(row.lines.len() - first);
        }
        height_of(tallest, CELL_SIZE)
    }

    /// Draws the row that was laid out last, every second one on a stripe.
    pub(super) fn draw_row(&mut self, page: &mut Page, height: f32, fonts: &mut Fonts) {
        let top = page.advance(height);
        if self.rows % 2 == 1 {
            page.fill(top, height, Grey::STRIPE);
        }
        self.rows += 1;
        let first = top - PADDING - CELL_SIZE * ASCENT;
        page.begin_texts(&fonts.regular, CELL_SIZE, Grey::INK);
        let (mut text_start, mut line_start) = (0, 0);
        for ((text_end, line_end), place) in self.row.ends.iter().zip(&self.columns) {
            let text = &self.row.text[text_start..*text_end];
            let mut y = first;
            for line in &self.row.lines[line_start..*line_end] {
                let x = place.start_of(&text[line.start..line.end], &mut fonts.regular);
                page.line(text, *line, (x, y), &mut fonts.regular);
                y -= CELL_SIZE * LEADING;
            }
            (text_start, line_start) = (*text_end, *line_end);
        }
        page.end_texts();
    }

    /// Draws a note that there are no rows.
    pub(super) fn draw_nothing(&self, page: &mut Page, fonts: &mut Fonts) {
        let top = page.advance(height_of(1, SUBTITLE_SIZE));
        let text = format!("No {}.", self.kind.name);
        let at = (SIDE + GAP / 2.0, top - PADDING - SUBTITLE_SIZE);
        page.begin_texts(&fonts.regular, SUBTITLE_SIZE, Grey::FAINT);
        page.text(&text, at, &mut fonts.regular);
        page.end_texts();
    }

    /// Draws the foot of a page.
    pub(super) fn draw_footer(&self, page: &mut Page, number: usize, fonts: &mut Fonts) {
        page.footer(&self.footer, number, &mut fonts.regular);
    }

    fn draw_headings(&self, page: &mut Page, fonts: &mut Fonts) {
        let mut lines: Vec<Vec<Line>> = Vec::with_capacity(self.columns.len());
        for (heading, place) in self.headings.iter().zip(&self.columns) {
            let fit = Fit {
                width: place.width,
                size: HEADING_SIZE,
                max_lines: 3,
            };
            let mut broken = Vec::new();
            wrap(heading, fit, &mut fonts.bold, &mut broken);
            lines.push(broken);
        }
        let tallest = lines.iter().map(Vec::len).max().unwrap_or(1);
        let height = height_of(tallest, HEADING_SIZE) + PADDING;
        let top = page.advance(height);
        page.fill(top, height, Grey::HEADING);
        page.begin_texts(&fonts.bold, HEADING_SIZE, Grey::INK);
        for ((heading, lines), place) in self.headings.iter().zip(&lines).zip(&self.columns) {
            let mut y = top - 1.5 * PADDING - HEADING_SIZE * ASCENT;
            for line in lines {
                let x = place.start_of(&heading[line.start..line.end], &mut fonts.bold);
                page.line(heading, *line, (x, y), &mut fonts.bold);
                y -= HEADING_SIZE * LEADING;
            }
        }
        page.end_texts();
        page.rule(top - height);
    }
}

impl ColumnSpan {
    fn start_of(self, text: &str, typeface: &mut Typeface) -> f32 {
        if self.on_the_right {
            self.left + self.width - typeface.width(text, CELL_SIZE)
        } else {
            self.left
        }
    }
}

/// Divides the width by the columns' usual widths. No column is narrower than the longest word of
/// its heading.
fn places(kind: &'static Kind, headings: &[String], bold: &mut Typeface) -> Vec<ColumnSpan> {
    let total: f32 = kind.columns.iter().map(weight).sum();
    let least: Vec<f32> = headings
        .iter()
        .map(|heading| {
            let words = heading.split(' ');
            let widest = words.map(|word| bold.width(word, HEADING_SIZE));
            widest.fold(0.0, f32::max) + GAP + 0.5
        })
        .collect();
    let share = |width: f32, total: f32, column| width * weight(column) / total;
    // The narrowest columns get more than their share, which is taken from the others.
    let raised = |i: usize, column| share(BODY_WIDTH, total, column) < least[i];
    let (mut fixed, mut shared) = (0.0, 0.0);
    for (i, column) in kind.columns.iter().enumerate() {
        if raised(i, column) {
            fixed += least[i];
        } else {
            shared += weight(column);
        }
    }
    let mut left = SIDE;
    let mut places = Vec::with_capacity(kind.columns.len());
    for (i, column) in kind.columns.iter().enumerate() {
        let width = if raised(i, column) {
            least[i]
        } else {
            share(BODY_WIDTH - fixed, shared, column)
        };
        places.push(ColumnSpan {
            left: left + GAP / 2.0,
            width: width - GAP,
            on_the_right: matches!(column.content, Content::Integer | Content::Number),
        });
        left += width;
    }
    places
}

/// Returns the weight of a column for its share of the width, in characters. Ids and times are as
/// readable on two lines (a time's date above it), and leave the width to other columns.
fn weight(column: &Column) -> f32 {
    let width = f32::from(column.width);
    let wanted = match column.content {
        Content::Id => width * 0.7,
        Content::Text | Content::Integer | Content::Number => width,
        Content::Date | Content::Timestamp => 12.6,
    };
    wanted.clamp(NARROWEST, WIDEST)
}

fn height_of(lines: usize, size: f32) -> f32 {
    let lines = u8::try_from(lines).unwrap_or(u8::MAX);
    f32::from(lines) * size * LEADING + 2.0 * PADDING
}

fn push_text(cell: Cell<'_>, text: &mut String) {
    // Writing to memory does not fail.
    let _ = match cell {
        Cell::Empty => Ok(()),
        Cell::Text(given) => text.write_str(given),
        Cell::Integer(number) => write!(text, "{number}"),
        Cell::Number(number) => write!(text, "{number}"),
        Cell::Date(day) => write!(text, "{day}"),
        Cell::Timestamp(moment) => write!(text, "{}", moment.format("%Y-%m-%d %H:%M")),
    };
}
