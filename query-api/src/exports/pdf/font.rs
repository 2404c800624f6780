//! One font of a PDF, embedded with only the used glyphs.

use std::cell::OnceCell;
use std::io::{self, Write};

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Chunk, Filter, Finish, Name, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId, RawFace, Tag};

use super::fallbacks::FontData;
use super::file::{PdfFile, compressed};

const SYSTEM: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};
/// PDF measures glyphs in thousandths of the font's size.
const UNITS: f32 = 1_000.0;

/// A font with its own name in the PDF.
pub(super) struct Font {
    /// The name that page contents use.
    pub(super) name: String,
    data: FontData,
    face: Face<'static>,
    shaper: OnceCell<Option<rustybuzz::Face<'static>>>,
    remapper: GlyphRemapper,
    /// The width and the characters of each used glyph by its new number. Glyph 0 is the box for
    /// characters that no font has.
    used: Vec<(f32, String)>,
}

/// A glyph in the PDF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyph {
    /// The index of its font in its typeface.
    pub(super) font: usize,
    /// Its number among the used ones.
    pub(super) id: u16,
    /// Its width at size 1.
    pub(super) width: f32,
}

impl Font {
    pub(super) fn new(name: String, data: FontData) -> io::Result<Self> {
        let face = Face::parse(data.bytes, data.index).map_err(io::Error::other)?;
        let mut font = Self {
            name,
            data,
            face,
            shaper: OnceCell::new(),
            remapper: GlyphRemapper::new(),
            used: Vec::new(),
        };
        font.take(GlyphId(0), "");
        Ok(font)
    }

    /// Returns the font's original number of a character's glyph.
    pub(super) fn find(&self, c: char) -> Option<GlyphId> {
        self.face.glyph_index(c)
    }

    /// Returns the shaper of its texts.
    pub(super) fn shaper(&self) -> Option<&rustybuzz::Face<'static>> {
        let shaper = || rustybuzz::Face::from_slice(self.data.bytes, self.data.index);
        self.shaper.get_or_init(shaper).as_ref()
    }

    /// Converts a length from the font's own units to size 1.
    pub(super) fn scaled(&self, units: i32) -> f32 {
        // Lengths are some thousands of units.
        let units = f32::from(i16::try_from(units).unwrap_or(i16::MAX));
        units / f32::from(self.face.units_per_em())
    }

    /// Marks a glyph that shows some characters as used. Returns its new number and its width.
    pub(super) fn take(&mut self, glyph: GlyphId, characters: &str) -> (u16, f32) {
        let units = self.face.glyph_hor_advance(glyph).unwrap_or_default();
        let width = f32::from(units) / f32::from(self.face.units_per_em());
        let id = self.remapper.remap(glyph.0);
        if usize::from(id) == self.used.len() {
            self.used.push((width * UNITS, characters.to_owned()));
        }
        (id, width)
    }

    /// Writes the font with the glyphs that were used.
    pub(super) fn write<W: Write>(&self, id: Ref, file: &mut PdfFile<W>) -> io::Result<()> {
        let [descendant, descriptor, data, cmap] = [(); 4].map(|()| file.allocate());
        let base_font = format!("WPUSED+{}", self.data.name);
        let base_font = Name(base_font.as_bytes());

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

        let subset = subsetter::subset(self.data.bytes, self.data.index, &self.remapper);
        let subset = subset.map_err(io::Error::other)?;
        self.write_program(data, &subset, file)?;

        let mut characters = UnicodeCmap::<u16>::new(Name(b"Waypost"), SYSTEM);
        for ((_, shown), glyph) in self.used.iter().zip(0..) {
            if !shown.is_empty() {
                characters.pair_with_multiple(glyph, shown.chars());
            }
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
        font.base_font(base_font)
            .system_info(SYSTEM)
            .font_descriptor(descriptor);
        if self.is_postscript() {
            font.subtype(CidFontType::Type0);
        } else {
            font.subtype(CidFontType::Type2)
                .cid_to_gid_map_predefined(Name(b"Identity"));
        }
        font.widths()
            .consecutive(0, self.used.iter().map(|(width, _)| *width));
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
        let mut descriptor = chunk.font_descriptor(id);
        descriptor
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
            .stem_v(if self.face.is_bold() { 140.0 } else { 80.0 });
        if self.is_postscript() {
            descriptor.font_file3(data);
        } else {
            descriptor.font_file2(data);
        }
        descriptor.finish();
        file.write(id, &chunk)
    }

    fn write_program<W: Write>(
        &self,
        id: Ref,
        subset: &[u8],
        file: &mut PdfFile<W>,
    ) -> io::Result<()> {
        let program = if self.is_postscript() {
            let tables = RawFace::parse(subset, 0).map_err(io::Error::other)?;
            let outlines = tables.table(Tag::from_bytes(b"CFF "));
            outlines.ok_or_else(|| io::Error::other("a font without outlines"))?
        } else {
            subset
        };
        let packed = compressed(program)?;
        let mut chunk = Chunk::new();
        let mut stream = chunk.stream(id, &packed);
        stream.filter(Filter::FlateDecode);
        if self.is_postscript() {
            stream.pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
        } else {
            let length = i32::try_from(program.len()).map_err(io::Error::other)?;
            stream.pair(Name(b"Length1"), length);
        }
        stream.finish();
        file.write(id, &chunk)
    }

    /// Whether its outlines are PostScript instead of TrueType.
    fn is_postscript(&self) -> bool {
        self.face.tables().cff.is_some()
    }
}
