//! One typeface of a PDF: its measures, and its glyphs as they come to be used.

use std::collections::HashMap;
use std::io::{self, Write};

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Chunk, Filter, Finish, Name, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::Face;

use super::file::{PdfFile, compressed};

const SYSTEM: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};
/// PDF measures glyphs in thousandths of the font's size.
const UNITS: f32 = 1_000.0;

/// A typeface under a name of its own in the PDF, of which only the used glyphs are embedded.
pub(super) struct Typeface {
    /// The name that page contents use.
    pub(super) name: Name<'static>,
    postscript_name: &'static [u8],
    data: &'static [u8],
    face: Face<'static>,
    ascii: [Option<Glyph>; 128],
    others: HashMap<char, Glyph>,
    remapper: GlyphRemapper,
    /// The width and the character of each used glyph but 0, in the order of their new numbers.
    used: Vec<(f32, char)>,
}

/// A glyph as it stands in the PDF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyph {
    /// Its number among the used ones.
    pub(super) id: u16,
    /// Its width at size 1.
    pub(super) width: f32,
}

impl Typeface {
    /// Takes a TrueType font whose subset is embedded under a PostScript name.
    pub(super) fn new(
        name: &'static [u8],
        postscript_name: &'static [u8],
        data: &'static [u8],
    ) -> io::Result<Self> {
        Ok(Self {
            name: Name(name),
            postscript_name,
            data,
            face: Face::parse(data, 0).map_err(io::Error::other)?,
            ascii: [None; 128],
            others: HashMap::new(),
            remapper: GlyphRemapper::new(),
            used: Vec::new(),
        })
    }

    /// The glyph that shows a character; an empty box where the typeface has none.
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

    /// The width of a text at a size.
    pub(super) fn width(&mut self, text: &str, size: f32) -> f32 {
        text.chars().map(|c| self.glyph(c).width).sum::<f32>() * size
    }

    fn load(&mut self, c: char) -> Glyph {
        // Line ends and the like within a cell show as a space.
        let c = if c.is_control() { ' ' } else { c };
        let original = self.face.glyph_index(c).unwrap_or_default();
        let units = self.face.glyph_hor_advance(original).unwrap_or_default();
        let width = f32::from(units) / f32::from(self.face.units_per_em());
        let id = self.remapper.remap(original.0);
        if usize::from(id) > self.used.len() {
            self.used.push((width * UNITS, c));
        }
        Glyph { id, width }
    }

    /// Writes the font with the glyphs that were used.
    pub(super) fn write<W: Write>(&self, id: Ref, file: &mut PdfFile<W>) -> io::Result<()> {
        let [descendant, descriptor, data, cmap] = [(); 4].map(|()| file.allocate());
        let base_font = [b"WPUSED+", self.postscript_name].concat();
        let base_font = Name(&base_font);

        let mut chunk = Chunk::new();
        chunk
            .type0_font(id)
            .base_font(base_font)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(descendant)
            .to_unicode(cmap);
        file.write(id, &chunk)?;
        self.write_descendant(descendant, descriptor, base_font, file)?;
        self.write_descriptor(descriptor, data, base_font, file)?;

        let subset = subsetter::subset(self.data, 0, &self.remapper).map_err(io::Error::other)?;
        let length = i32::try_from(subset.len()).map_err(io::Error::other)?;
        let packed = compressed(&subset)?;
        let mut chunk = Chunk::new();
        let mut stream = chunk.stream(data, &packed);
        stream.filter(Filter::FlateDecode);
        stream.pair(Name(b"Length1"), length);
        stream.finish();
        file.write(data, &chunk)?;

        let mut characters = UnicodeCmap::<u16>::new(Name(b"Waypost"), SYSTEM);
        for ((_, character), glyph) in self.used.iter().zip(1..) {
            characters.pair(glyph, *character);
        }
        let packed = compressed(characters.finish().as_slice())?;
        let mut chunk = Chunk::new();
        chunk.cmap(cmap, &packed).filter(Filter::FlateDecode);
        file.write(cmap, &chunk)
    }

    fn write_descendant<W: Write>(
        &self,
        id: Ref,
        descriptor: Ref,
        base_font: Name<'_>,
        file: &mut PdfFile<W>,
    ) -> io::Result<()> {
        let mut chunk = Chunk::new();
        let mut font = chunk.cid_font(id);
        font.subtype(CidFontType::Type2)
            .base_font(base_font)
            .system_info(SYSTEM)
            .font_descriptor(descriptor)
            .cid_to_gid_map_predefined(Name(b"Identity"));
        font.widths()
            .consecutive(1, self.used.iter().map(|(width, _)| *width));
        font.finish();
        file.write(id, &chunk)
    }

    fn write_descriptor<W: Write>(
        &self,
        id: Ref,
        data: Ref,
        base_font: Name<'_>,
        file: &mut PdfFile<W>,
    ) -> io::Result<()> {
        let scale = UNITS / f32::from(self.face.units_per_em());
        let scaled = |units: i16| f32::from(units) * scale;
        let bounds = self.face.global_bounding_box();
        let mut chunk = Chunk::new();
        chunk
            .font_descriptor(id)
            .name(base_font)
            .flags(FontFlags::SYMBOLIC)
            .bbox(Rect::new(
                scaled(bounds.x_min),
                scaled(bounds.y_min),
                scaled(bounds.x_max),
                scaled(bounds.y_max),
            ))
            .italic_angle(0.0)
            .ascent(scaled(self.face.ascender()))
            .descent(scaled(self.face.descender()))
            .cap_height(scaled(self.face.capital_height().unwrap_or_default()))
            .stem_v(if self.face.is_bold() { 140.0 } else { 80.0 })
            .font_file2(data);
        file.write(id, &chunk)
    }
}
