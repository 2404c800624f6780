//! Texts whose glyphs do not simply follow one another: those that run from right to left, whose
//! letters join, or that need several fonts.

use rustybuzz::{Direction, UnicodeBuffer};
use ttf_parser::GlyphId;
use unicode_bidi::{BidiInfo, Level};

use super::font::Glyph;
use super::typeface::Typeface;

/// The first character that needs shaping, Hebrew's.
const FIRST: char = '\u{590}';

/// A positioned glyph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) glyph: Glyph,
    /// Its position from the text's beginning, at size 1.
    pub(super) x: f32,
    pub(super) y: f32,
}

/// Whether each character of a text is shown by its own glyph of the built-in font, in order.
pub(super) fn is_simple(text: &str, typeface: &mut Typeface) -> bool {
    text.is_ascii()
        || text
            .chars()
            .all(|c| (c < FIRST || is_spacing(c)) && typeface.glyph(c).font == 0)
}

/// General punctuation, currencies and signs, except those that control text direction.
fn is_spacing(c: char) -> bool {
    matches!(c, '\u{1e00}'..='\u{200a}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205f}' | '\u{20a0}'..='\u{20cf}')
}

/// Whether a text as a whole runs from right to left.
pub(super) fn runs_left(text: &str) -> bool {
    !text.is_ascii() && unicode_bidi::get_base_direction(text) == unicode_bidi::Direction::Rtl
}

/// Returns the glyphs of one line, from left to right.
pub(super) fn placed(text: &str, runs_left: bool, typeface: &mut Typeface) -> Vec<Placed> {
    // Line ends and the like are shown as a space, and do not begin another paragraph.
    let text = text.replace(char::is_control, " ");
    let level = if runs_left {
        Level::rtl()
    } else {
        Level::ltr()
    };
    let directions = BidiInfo::new(&text, Some(level));
    let mut line = Line {
        typeface,
        glyphs: Vec::new(),
        x: 0.0,
    };
    for paragraph in &directions.paragraphs {
        let (levels, runs) = directions.visual_runs(paragraph, paragraph.range.clone());
        for run in runs {
            line.add(&text[run.clone()], levels[run.start].is_rtl());
        }
    }
    line.glyphs
}

struct Line<'t> {
    typeface: &'t mut Typeface,
    glyphs: Vec<Placed>,
    x: f32,
}

impl Line<'_> {
    /// Adds a text that runs in one direction.
    fn add(&mut self, text: &str, runs_left: bool) {
        let mut parts = self.parts(text);
        if runs_left {
            parts.reverse();
        }
        for (font, part) in parts {
            self.shape(font, part, runs_left);
        }
    }

    /// Splits a text by font.
    fn parts<'a>(&mut self, text: &'a str) -> Vec<(usize, &'a str)> {
        let mut parts: Vec<(usize, &str)> = Vec::new();
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let font = self.typeface.glyph(c).font;
            match parts.last_mut() {
                // A space is part of any font.
                Some((last, part)) if *last == font || c == ' ' => {
                    *part = &text[start..at + c.len_utf8()];
                }
                _ => {
                    start = at;
                    parts.push((font, &text[at..at + c.len_utf8()]));
                }
            }
        }
        parts
    }

    fn shape(&mut self, place: usize, text: &str, runs_left: bool) {
        let font = &mut self.typeface.fonts[place];
        let mut buffer = UnicodeBuffer::new();
        buffer.push_str(text);
        buffer.set_direction(if runs_left {
            Direction::RightToLeft
        } else {
            Direction::LeftToRight
        });
        buffer.guess_segment_properties();
        let Some(shaper) = font.shaper() else {
            return;
        };
        let shaped = rustybuzz::shape(shaper, &[], buffer);
        let mut begins: Vec<usize> = shaped
            .glyph_infos()
            .iter()
            .map(|glyph| glyph.cluster as usize)
            .collect();
        begins.sort_unstable();
        begins.dedup();
        let mut told = None;
        for (glyph, place_of) in shaped.glyph_infos().iter().zip(shaped.glyph_positions()) {
            let begin = glyph.cluster as usize;
            let next = begins[begins.partition_point(|other| *other <= begin)..].first();
            // Of several glyphs that show some characters together, one carries these characters.
            let characters = if told == Some(begin) {
                ""
            } else {
                &text[begin..next.copied().unwrap_or(text.len())]
            };
            told = Some(begin);
            let original = GlyphId(u16::try_from(glyph.glyph_id).unwrap_or_default());
            let (id, width) = font.take(original, characters);
            self.glyphs.push(Placed {
                glyph: Glyph {
                    font: place,
                    id,
                    width,
                },
                x: self.x + font.scaled(place_of.x_offset),
                y: font.scaled(place_of.y_offset),
            });
            self.x += font.scaled(place_of.x_advance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::regular;
    use super::*;

    /// Returns the numbers of the glyphs from left to right, and of each character's own glyph.
    fn shown(text: &str, of: &str) -> (Vec<u16>, Vec<u16>) {
        let mut typeface = regular();
        let glyphs = placed(text, runs_left(text), &mut typeface);
        assert!(glyphs.is_sorted_by(|a, b| a.x < b.x), "{glyphs:?}");
        let own = of.chars().map(|c| typeface.glyph(c).id).collect();
        (glyphs.iter().map(|placed| placed.glyph.id).collect(), own)
    }

    #[test]
    fn right_to_left_text_is_written_from_right_to_left() {
        for (text, seen) in [
            ("אבג", "גבא"),
            ("אב 12", "12 בא"),
            ("a אב (c)", "a בא (c)"),
            ("אב (a)", "(a) בא"),
        ] {
            let (glyphs, own) = shown(text, seen);
            assert_eq!(glyphs, own, "{text}");
        }
    }

    #[test]
    fn arabic_letters_join() {
        let (glyphs, own) = shown("محمد", "دمحم");
        assert_eq!(glyphs.len(), 4);
        assert_ne!(glyphs, own);
    }

    #[test]
    fn plain_texts_take_the_short_way() {
        let mut typeface = regular();
        for text in ["Łódź – „Søn“ … 5 €", "Ζωή Петров", ""] {
            assert!(is_simple(text, &mut typeface), "{text}");
        }
        for text in ["שרה", "a\u{202e}b", "漢"] {
            assert!(!is_simple(text, &mut typeface), "{text}");
        }
    }
}
