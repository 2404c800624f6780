//! One page: where things stand on it, and drawing on it from the top down.

use pdf_writer::{Buf, Content, Name, Str};

use super::typeface::Typeface;
use super::wrap::ELLIPSIS;

/// The width of A4 across, in points.
pub(super) const PAGE_WIDTH: f32 = 841.89;
/// The height of A4 across, in points.
pub(super) const PAGE_HEIGHT: f32 = 595.28;
/// White space on the left and on the right.
pub(super) const SIDE: f32 = 26.0;
/// The width between the margins.
pub(super) const BODY_WIDTH: f32 = PAGE_WIDTH - 2.0 * SIDE;
/// The size of the footer's letters.
pub(super) const FOOTER_SIZE: f32 = 7.0;
/// The object that shows the number of all pages.
pub(super) const TOTAL: Name<'static> = Name(b"T");
/// More room than that number ever takes.
pub(super) const TOTAL_WIDTH: f32 = 60.0;

const TOP: f32 = 30.0;
/// Where rows end.
const FLOOR: f32 = 38.0;
/// The baseline of the footer.
const FOOTER: f32 = 22.0;

/// A page that is being drawn.
pub(super) struct Page {
    content: Content,
    /// How far down the page is filled.
    y: f32,
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
        }
    }
}

impl Page {
    /// Whether something of this height fits in above the footer.
    pub(super) fn has_room_for(&self, height: f32) -> bool {
        self.y - height >= FLOOR
    }

    /// Moves down; gives the height where the part that is left behind began.
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
            .set_font(typeface.name, size);
    }

    /// Shows one text between [`Self::begin_texts`] and [`Self::end_texts`].
    pub(super) fn text(
        &mut self,
        text: &str,
        shortened: bool,
        at: (f32, f32),
        typeface: &mut Typeface,
    ) {
        show(&mut self.content, text, shortened, at, typeface);
    }

    /// Ends the texts of one typeface, size and shade.
    pub(super) fn end_texts(&mut self) {
        self.content.end_text();
    }

    /// Draws the line at the foot: the page's number on the left, what this is on the right. The
    /// number of all pages is not known yet, so nothing may stand right of it.
    pub(super) fn footer(&mut self, what: &str, number: usize, typeface: &mut Typeface) {
        self.rule(FLOOR - 5.0);
        let number = format!("Page {number} of ");
        let total = SIDE + typeface.width(&number, FOOTER_SIZE);
        let right = SIDE + BODY_WIDTH - typeface.width(what, FOOTER_SIZE);
        self.begin_texts(typeface, FOOTER_SIZE, Grey::FAINT);
        self.text(&number, false, (SIDE, FOOTER), typeface);
        self.text(what, false, (right, FOOTER), typeface);
        self.end_texts();
        self.content
            .save_state()
            .transform([1.0, 0.0, 0.0, 1.0, total, FOOTER])
            .x_object(TOTAL)
            .restore_state();
    }

    /// The page's content.
    pub(super) fn finish(self) -> Buf {
        self.content.finish()
    }
}

/// Draws a text by itself.
pub(super) fn set_text(
    content: &mut Content,
    text: &str,
    at: (f32, f32),
    size: f32,
    typeface: &mut Typeface,
) {
    content
        .set_fill_gray(Grey::FAINT.0)
        .begin_text()
        .set_font(typeface.name, size);
    show(content, text, false, at, typeface);
    content.end_text();
}

fn show(
    content: &mut Content,
    text: &str,
    shortened: bool,
    (x, y): (f32, f32),
    typeface: &mut Typeface,
) {
    let rest = shortened.then_some(ELLIPSIS);
    let mut glyphs = Vec::with_capacity(2 * (text.len() + 1));
    for c in text.chars().chain(rest) {
        glyphs.extend(typeface.glyph(c).id.to_be_bytes());
    }
    content
        .set_text_matrix([1.0, 0.0, 0.0, 1.0, x, y])
        .show(Str(&glyphs));
}
