//! PDF tables, written page by page.
//!
//! Pages and rows are not kept: a page is compressed and written as soon as it is full, so that
//! memory use is constant regardless of their number. The total number of pages, which each page
//! shows, is one object that all pages refer to and that is written last.

mod fallbacks;
mod file;
mod font;
mod page;
mod shaping;
mod table;
mod typeface;
mod wrap;

use std::io::{self, Write};
use std::sync::Arc;

use pdf_writer::types::PageMode;
use pdf_writer::{Chunk, Content, Date, Filter, Finish, Name, Rect, Ref, TextStr};

pub use self::fallbacks::Fallbacks;
use self::fallbacks::FontData;
use self::file::{PdfFile, compressed};
use self::font::Font;
use self::page::{FOOTER_SIZE, PAGE_HEIGHT, PAGE_WIDTH, Page, TOTAL, TOTAL_WIDTH};
use self::table::Table;
use self::typeface::Typeface;
use super::Title;
use super::column::{Cell, Kind};

/// Pages per node of the page tree.
const PAGES_PER_NODE: usize = 64;

/// Writes the rows of one kind as a table, over as many pages as needed.
pub struct PdfWriter<W> {
    file: PdfFile<W>,
    fonts: Fonts,
    table: Table,
    page: Page,
    ids: Ids,
    nodes: Vec<(Ref, Vec<Ref>)>,
    pages: usize,
}

/// The two typefaces of a page.
struct Fonts {
    regular: Typeface,
    bold: Typeface,
}

/// Objects that others refer to before they are written.
#[derive(Clone, Copy)]
struct Ids {
    catalog: Ref,
    info: Ref,
    root: Ref,
    resources: Ref,
    total: Ref,
}

const REGULAR: FontData = FontData {
    name: "DejaVuSansCondensed",
    bytes: include_bytes!("../../../fonts/DejaVuSansCondensed.ttf"),
    index: 0,
};
const BOLD: FontData = FontData {
    name: "DejaVuSansCondensed-Bold",
    bytes: include_bytes!("../../../fonts/DejaVuSansCondensed-Bold.ttf"),
    index: 0,
};

impl<W: Write> PdfWriter<W> {
    /// Begins a file with its first page.
    pub fn new(
        kind: &'static Kind,
        title: Title,
        fallbacks: &Arc<Fallbacks>,
        out: W,
    ) -> io::Result<Self> {
        let mut file = PdfFile::new(out)?;
        let ids = Ids {
            catalog: file.allocate(),
            info: file.allocate(),
            root: file.allocate(),
            resources: file.allocate(),
            total: file.allocate(),
        };
        let mut fonts = Fonts {
            regular: Typeface::new("R", REGULAR, fallbacks)?,
            bold: Typeface::new("B", BOLD, fallbacks)?,
        };
        write_info(ids, kind, &title, &mut file)?;
        let table = Table::new(kind, title, &mut fonts);
        let page = table.first_page(&mut fonts);
        Ok(Self {
            file,
            fonts,
            table,
            page,
            ids,
            nodes: Vec::new(),
            pages: 0,
        })
    }

    /// Writes one row, on a new page if this one is full.
    pub fn write_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let height = self.table.lay_out(cells, &mut self.fonts);
        if !self.page.has_room_for(height) {
            let next = self.table.further_page(&mut self.fonts);
            let full = std::mem::replace(&mut self.page, next);
            self.write_page(full)?;
        }
        self.table.draw_row(&mut self.page, height, &mut self.fonts);
        Ok(())
    }

    /// Writes the rest and returns the sink.
    pub fn finish(mut self) -> io::Result<W> {
        if self.table.is_empty() {
            self.table.draw_nothing(&mut self.page, &mut self.fonts);
        }
        let last = std::mem::take(&mut self.page);
        self.write_page(last)?;
        self.write_total()?;
        self.write_tree()?;
        self.write_resources()?;
        self.file.finish(self.ids.catalog, self.ids.info)
    }

    fn write_page(&mut self, mut page: Page) -> io::Result<()> {
        self.pages += 1;
        self.table
            .draw_footer(&mut page, self.pages, &mut self.fonts);
        let (id, content) = (self.file.allocate(), self.file.allocate());
        if self
            .nodes
            .last()
            .is_none_or(|(_, pages)| pages.len() == PAGES_PER_NODE)
        {
            let node = self.file.allocate();
            self.nodes.push((node, Vec::new()));
        }
        let Some((node, pages)) = self.nodes.last_mut() else {
            return Ok(());
        };
        pages.push(id);
        let mut chunk = Chunk::new();
        chunk
            .page(id)
            .parent(*node)
            .media_box(Rect::new(0.0, 0.0, PAGE_WIDTH, PAGE_HEIGHT))
            .contents(content)
            .pair(Name(b"Resources"), self.ids.resources);
        self.file.write(id, &chunk)?;

        let packed = compressed(page.finish().as_slice())?;
        let mut chunk = Chunk::new();
        chunk.stream(content, &packed).filter(Filter::FlateDecode);
        self.file.write(content, &chunk)
    }

    /// Writes the total number of pages, drawn by each page's footer.
    fn write_total(&mut self) -> io::Result<()> {
        let mut content = Content::new();
        let total = self.pages.to_string();
        page::set_text(&mut content, &total, FOOTER_SIZE, &mut self.fonts.regular);
        let content = content.finish();
        let mut chunk = Chunk::new();
        let mut form = chunk.form_xobject(self.ids.total, content.as_slice());
        form.bbox(Rect::new(0.0, -FOOTER_SIZE, TOTAL_WIDTH, FOOTER_SIZE));
        form.pair(Name(b"Resources"), self.ids.resources);
        form.finish();
        self.file.write(self.ids.total, &chunk)
    }

    fn write_tree(&mut self) -> io::Result<()> {
        for (id, pages) in &self.nodes {
            let mut chunk = Chunk::new();
            chunk
                .pages(*id)
                .parent(self.ids.root)
                .count(count(pages.len()))
                .kids(pages.iter().copied());
            self.file.write(*id, &chunk)?;
        }
        let mut chunk = Chunk::new();
        chunk
            .pages(self.ids.root)
            .count(count(self.pages))
            .kids(self.nodes.iter().map(|(id, _)| *id));
        self.file.write(self.ids.root, &chunk)?;

        let mut chunk = Chunk::new();
        let mut catalog = chunk
            .indirect(self.ids.catalog)
            .start::<pdf_writer::writers::Catalog<'_>>();
        catalog.pages(self.ids.root).page_mode(PageMode::UseNone);
        catalog.viewer_preferences().display_doc_title(true);
        catalog.finish();
        self.file.write(self.ids.catalog, &chunk)
    }

    /// Writes the fonts, and the dictionary that names them.
    fn write_resources(&mut self) -> io::Result<()> {
        let fonts = [&self.fonts.regular.fonts, &self.fonts.bold.fonts];
        let fonts: Vec<(Ref, &Font)> = fonts
            .into_iter()
            .flatten()
            .map(|font| (self.file.allocate(), font))
            .collect();
        let mut chunk = Chunk::new();
        let mut resources = chunk
            .indirect(self.ids.resources)
            .start::<pdf_writer::writers::Resources<'_>>();
        let named = fonts
            .iter()
            .map(|(id, font)| (Name(font.name.as_bytes()), *id));
        resources.fonts().pairs(named);
        resources.x_objects().pair(TOTAL, self.ids.total);
        resources.finish();
        self.file.write(self.ids.resources, &chunk)?;
        for (id, font) in fonts {
            font.write(id, &mut self.file)?;
        }
        Ok(())
    }
}

fn write_info<W: Write>(
    ids: Ids,
    kind: &Kind,
    title: &Title,
    file: &mut PdfFile<W>,
) -> io::Result<()> {
    use chrono::{Datelike, Timelike};
    let part = |number: u32| u8::try_from(number).unwrap_or_default();
    let at = title.at;
    let created = Date::new(u16::try_from(at.year()).unwrap_or_default())
        .month(part(at.month()))
        .day(part(at.day()))
        .hour(part(at.hour()))
        .minute(part(at.minute()))
        .second(part(at.second()))
        .utc_offset_hour(0)
        .utc_offset_minute(0);
    let name = format!("{} – {}", kind.title, title.organization);
    let mut chunk = Chunk::new();
    chunk
        .indirect(ids.info)
        .start::<pdf_writer::writers::DocumentInfo<'_>>()
        .title(TextStr(&name))
        .producer(TextStr("Waypost"))
        .creation_date(created);
    file.write(ids.info, &chunk)
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
