//! System fonts, for characters that the built-in fonts lack.
//!
//! They are searched when the first such character occurs. A font stays in memory once it is used,
//! as the built-in ones do.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ttf_parser::cmap::Subtable;
use ttf_parser::{Face, PlatformId, Weight, name_id};

/// Characters are indexed in blocks of this many.
const BLOCK: u32 = 256;
/// Maximum depth of searched folders.
const DEPTH: usize = 4;
/// Larger files are not fonts that one would embed.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The font of one face in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FontData {
    /// Its PostScript name.
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
    pub(super) index: u32,
}

/// The fonts found in some folders.
#[derive(Debug)]
pub struct Fallbacks {
    folders: Vec<PathBuf>,
    found: OnceLock<Vec<Found>>,
}

#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// The blocks that it has characters of.
    blocks: Vec<u32>,
    data: OnceLock<Option<FontData>>,
}

impl Fallbacks {
    /// The fonts in these folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            found: OnceLock::new(),
        }
    }

    /// Returns the first font that has a character.
    pub(super) fn font_of(&self, c: char) -> Option<FontData> {
        let found = self.found.get_or_init(|| self.look());
        let block = u32::from(c) / BLOCK;
        let candidates = found
            .iter()
            .filter(|font| font.blocks.binary_search(&block).is_ok());
        candidates.filter_map(Found::data).find(|data| {
            data.face()
                .is_some_and(|face| face.glyph_index(c).is_some())
        })
    }

    fn look(&self) -> Vec<Found> {
        let mut files = Vec::new();
        for folder in &self.folders {
            collect(folder, DEPTH, &mut files);
        }
        // Plain faces first, in a stable order.
        files.sort_by_key(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (!name.contains("Sans"), name.len(), name.into_owned())
        });
        let found: Vec<Found> = files.into_iter().filter_map(Found::of).collect();
        tracing::info!(fonts = found.len(), "looked for fonts for PDF exports");
        found
    }
}

impl Found {
    fn of(path: PathBuf) -> Option<Self> {
        let bytes = fs::read(&path).ok()?;
        let face = Face::parse(&bytes, 0).ok()?;
        let tables = face.tables();
        let has_outlines = tables.glyf.is_some() || tables.cff.is_some();
        let is_upright = face.is_regular() && !face.is_monospaced();
        let is_plain = is_upright && face.weight() == Weight::Normal;
        if !has_outlines || !is_plain {
            return None;
        }
        let mut blocks = Vec::new();
        for table in tables
            .cmap?
            .subtables
            .into_iter()
            .filter(Subtable::is_unicode)
        {
            table.codepoints(|c| {
                if blocks.last() != Some(&(c / BLOCK)) {
                    blocks.push(c / BLOCK);
                }
            });
        }
        blocks.sort_unstable();
        blocks.dedup();
        Some(Self {
            path,
            blocks,
            data: OnceLock::new(),
        })
    }

    fn data(&self) -> Option<FontData> {
        let read = || {
            let bytes: &'static [u8] = Vec::leak(fs::read(&self.path).ok()?);
            let name = postscript_name(&Face::parse(bytes, 0).ok()?);
            Some(FontData {
                name: String::leak(name),
                bytes,
                index: 0,
            })
        };
        *self.data.get_or_init(read)
    }
}

impl FontData {
    fn face(self) -> Option<Face<'static>> {
        Face::parse(self.bytes, self.index).ok()
    }
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let Ok(about) = fs::metadata(&path) else {
            continue;
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        if about.is_dir() && depth > 0 {
            collect(&path, depth - 1, files);
        } else if matches!(extension, Some("ttf" | "otf" | "ttc")) && about.len() <= LARGEST {
            files.push(path);
        }
    }
}

/// Returns the name, reduced to characters that PDF accepts unescaped.
fn postscript_name(face: &Face<'_>) -> String {
    let names = face.names().into_iter();
    let mut own = names.filter(|name| {
        name.name_id == name_id::POST_SCRIPT_NAME && name.platform_id == PlatformId::Windows
    });
    let name = own.find_map(|name| name.to_string()).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let name: String = name.chars().filter(plain).collect();
    if name.is_empty() {
        "Fallback".to_owned()
    } else {
        name
    }
}
