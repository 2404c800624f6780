//! One page: its layout, and drawing on it from the top down.

use pdf_writer::{Buf, Content, Name, Str};

use super::shaping::{Placed, is_simple, placed, runs_left};
use super::typeface::Typeface;
use super::wrap::{ELLIPSIS, Line};

/// The width of A4 landscape, in points.
pub(super) const PAGE_WIDTH: f32 = 841.89;
/// The height of A4 landscape, in points.
pub(super) const PAGE_HEIGHT: f32 = 595.28;
/// Left and right margin.
pub(super) const SIDE: f32 = 26.0;
/// The width between the margins.
pub(super) const BODY_WIDTH: f32 = PAGE_WIDTH - 2.0 * SIDE;
/// The font size of the footer.
pub(super) const FOOTER_SIZE: f32 = 7.0;
/// The object that shows the total number of pages.
pub(super) const TOTAL: Name<'static> = Name(b"T");
/// More room than that number ever takes.
pub(super) const TOTAL_WIDTH: f32 = 60.0;

/// Glyphs this close to their usual position, at size 1, need no positioning of their own.
const NEAR: f32 = 0.001;
const TOP: f32 = 30.0;
/// The lower end of the rows.
const FLOOR: f32 = 38.0;
/// The baseline of the footer.
const FOOTER: f32 = 22.0;

/// A page that is being drawn.
pub(super) struct Page {
    content: Content,
    /// How far down the page is filled.
    y: f32,
    /// The font size of the current texts.
    size: f32,
    /// The start of the last of them, in hundredths of a point.
    last: (f32, f32),
}

/// A shade of grey, 0 black and 1 white.
#[derive(Clone, Copy)]
pub(super) struct Grey(pub(super) f32);

impl Grey {
    pub(super) const INK: Self = Self(0.1);
    pub(super) const FAINT: Self = Self(0.4);
    pub(super) const RULE: Self = Self(0.6);
    pub(super) const HEADING: Self = Self(0.89);
    pub(super) const STRIPE: Self = Self(0.96);
}

impl Default for Page {
    fn default() -> Self {
        Self {
            content: Content::with_capacity(64 * 1024),
            y: PAGE_HEIGHT - TOP,
            size: 0.0,
            last: (0.0, 0.0),
        }
    }
}

impl Page {
    /// Whether something of this height fits above the footer.
    pub(super) fn has_room_for(&self, height: f32) -> bool {
        self.y - height >= FLOOR
    }

    /// Moves down. Returns the height at which the passed part began.
    pub(super) fn advance(&mut self, height: f32) -> f32 {
        let top = self.y;
        self.y -= height;
        top
    }

    /// Fills a stripe over the whole width.
    pub(super) fn fill(&mut self, top: f32, height: f32, grey: Grey) {
        self.content
            .set_fill_gray(grey.0)
            .rect(SIDE, top - height, BODY_WIDTH, height)
            .fill_nonzero();
    }

    /// Draws a line over the whole width.
    pub(super) fn rule(&mut self, y: f32) {
        self.content
            .set_stroke_gray(Grey::RULE.0)
            .set_line_width(0.5)
            .move_to(SIDE, y)
            .line_to(SIDE + BODY_WIDTH, y)
            .stroke();
    }

    /// Begins the texts of one typeface, size and shade.
    pub(super) fn begin_texts(&mut self, typeface: &Typeface, size: f32, grey: Grey) {
        self.content
            .set_fill_gray(grey.0)
            .begin_text()
            .set_font(Name(typeface.name().as_bytes()), size);
        (self.size, self.last) = (size, (0.0, 0.0));
    }

    /// Shows one text between [`Self::begin_texts`] and [`Self::end_texts`].
    pub(super) fn text(&mut self, text: &str, at: (f32, f32), typeface: &mut Typeface) {
        let whole = Line {
            start: 0,
            end: text.len(),
            shortened: false,
            runs_left: runs_left(text),
        };
        self.line(text, whole, at, typeface);
    }

    /// Shows one line of a text.
    pub(super) fn line(&mut self, text: &str, line: Line, at: (f32, f32), typeface: &mut Typeface) {
        let text = &text[line.start..line.end];
        if is_simple(text, typeface) {
            let rest = line.shortened.then_some(ELLIPSIS);
            self.move_to(at);
            return show(&mut self.content, text.chars().chain(rest), typeface);
        }
        let text = format!("{text}{}", if line.shortened { "…" } else { "" });
        let glyphs = placed(&text, line.runs_left, typeface);
        self.show_placed(&glyphs, at, typeface);
    }

    /// Moves to the start of the next text, relative to the last one: the offset is the same from
    /// row to row, which compresses well.
    fn move_to(&mut self, (x, y): (f32, f32)) {
        // Whole numbers of this size add up exactly.
        let next = ((x * 100.0).round(), (y * 100.0).round());
        let last = std::mem::replace(&mut self.last, next);
        let by = |from: f32, to: f32| (to - from) / 100.0;
        self.content
            .next_line(by(last.0, next.0), by(last.1, next.1));
    }

    /// Shows glyphs, grouped by adjacent glyphs of one font.
    fn show_placed(&mut self, mut glyphs: &[Placed], (x, y): (f32, f32), typeface: &Typeface) {
        while let Some(first) = glyphs.first() {
            let mut end = first.x;
            let mut text = Vec::new();
            for next in glyphs {
                let same = (next.glyph.font, next.y) == (first.glyph.font, first.y);
                if !same || (next.x - end).abs() > NEAR {
                    break;
                }
                end = next.x + next.glyph.width;
                text.extend(next.glyph.id.to_be_bytes());
            }
            glyphs = &glyphs[text.len() / 2..];
            let font = &typeface.fonts[first.glyph.font];
            let at = (x + first.x * self.size, y + first.y * self.size);
            self.move_to(at);
            self.content
                .set_font(Name(font.name.as_bytes()), self.size)
                .show(Str(&text));
        }
        let own = Name(typeface.name().as_bytes());
        self.content.set_font(own, self.size);
    }

    /// Ends the texts of one typeface, size and shade.
    pub(super) fn end_texts(&mut self) {
        self.content.end_text();
    }

    /// Draws the footer: the page number on the left, `what` on the right. The total number of
    /// pages is not known yet, so nothing may follow it on its right.
    pub(super) fn footer(&mut self, what: &str, number: usize, typeface: &mut Typeface) {
        self.rule(FLOOR - 5.0);
        let number = format!("Page {number} of ");
        let total = SIDE + typeface.width(&number, FOOTER_SIZE);
        let right = SIDE + BODY_WIDTH - typeface.width(what, FOOTER_SIZE);
        self.begin_texts(typeface, FOOTER_SIZE, Grey::FAINT);
        self.text(&number, (SIDE, FOOTER), typeface);
        self.text(what, (right, FOOTER), typeface);
        self.end_texts();
        self.content
            .save_state()
            .transform([1.0, 0.0, 0.0, 1.0, total, FOOTER])
            .x_object(TOTAL)
            .restore_state();
    }

    /// Returns the page's content.
    pub(super) fn finish(self) -> Buf {
        self.content.finish()
    }
}

/// Draws a single text, from the start of its page or form.
pub(super) fn set_text(content: &mut Content, text: &str, size: f32, typeface: &mut Typeface) {
    content
        .set_fill_gray(Grey::FAINT.0)
        .begin_text()
        .set_font(Name(typeface.name().as_bytes()), size);
    show(content, text.chars(), typeface);
    content.end_text();
}

fn show(content: &mut Content, text: impl Iterator<Item = char>, typeface: &mut Typeface) {
    let mut glyphs = Vec::with_capacity(64);
    for c in text {
        glyphs.extend(typeface.glyph(c).id.to_be_bytes());
    }
    content.show(Str(&glyphs));
}
