//! A built-in font, with fallbacks for characters that it lacks.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use ttf_parser::GlyphId;

use super::fallbacks::{Fallbacks, FontData};
use super::font::{Font, Glyph};

/// A built-in font, and the fallbacks needed so far.
pub(super) struct Typeface {
    /// The built-in font first.
    pub(super) fonts: Vec<Font>,
    fallbacks: Arc<Fallbacks>,
    ascii: [Option<Glyph>; 128],
    others: HashMap<char, Glyph>,
}

impl Typeface {
    pub(super) fn new(
        name: &str,
        built_in: FontData,
        fallbacks: &Arc<Fallbacks>,
    ) -> io::Result<Self> {
        Ok(Self {
            fonts: vec![Font::new(name.to_owned(), built_in)?],
            fallbacks: Arc::clone(fallbacks),
            ascii: [None; 128],
            others: HashMap::new(),
        })
    }

    /// The name of the built-in font.
    pub(super) fn name(&self) -> &str {
        &self.fonts[0].name
    }

    /// Returns the glyph of a single character, an empty box if no font has it.
    pub(super) fn glyph(&mut self, c: char) -> Glyph {
        let known = match self.ascii.get(c as usize) {
            Some(glyph) => *glyph,
            None => self.others.get(&c).copied(),
        };
        if let Some(glyph) = known {
            return glyph;
        }
        let glyph = self.load(c);
        match self.ascii.get_mut(c as usize) {
            Some(slot) => *slot = Some(glyph),
            None => {
                self.others.insert(c, glyph);
            }
        }
        glyph
    }

    /// Returns the width of a text at a font size.
    pub(super) fn width(&mut self, text: &str, size: f32) -> f32 {
        text.chars().map(|c| self.glyph(c).width).sum::<f32>() * size
    }

    fn load(&mut self, c: char) -> Glyph {
        // Line ends and the like within a cell are shown as a space.
        let c = if c.is_control() { ' ' } else { c };
        let (font, glyph) = self.find(c).unwrap_or((0, GlyphId(0)));
        let (id, width) = self.fonts[font].take(glyph, c.encode_utf8(&mut [0; 4]));
        Glyph { font, id, width }
    }

    fn find(&mut self, c: char) -> Option<(usize, GlyphId)> {
        for (place, font) in self.fonts.iter().enumerate() {
            if let Some(glyph) = font.find(c) {
                return Some((place, glyph));
            }
        }
        let data = self.fallbacks.font_of(c)?;
        // All fonts in use were just searched.
        let name = format!("{}{}", self.fonts[0].name, self.fonts.len());
        let font = Font::new(name, data).ok()?;
        let glyph = font.find(c)?;
        self.fonts.push(font);
        Some((self.fonts.len() - 1, glyph))
    }
}
