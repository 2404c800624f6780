//! Renders Markdown documents as parts of a page.

use std::collections::HashMap;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A rendered document.
pub(super) struct Written {
    /// Its first heading, as text.
    pub(super) title: String,
    pub(super) html: String,
    /// Its sections, for the search. The first one has no anchor.
    pub(super) sections: Vec<Section>,
}

/// A heading and the text below it.
#[derive(Default)]
pub(super) struct Section {
    pub(super) depth: u8,
    pub(super) heading: String,
    pub(super) anchor: String,
    pub(super) text: String,
}

/// Resolves links and pictures of a document.
pub(super) trait Places {
    /// Returns the target of a link; `None` renders it as text.
    fn lead(&self, link: &str) -> Option<String>;
    /// Returns a picture as the page shows it, with `about` as its alternative text; `None` if it
    /// does not exist, which shows only that text.
    fn picture(&self, link: &str, about: &str) -> Option<String>;
}

/// Renders a document.
pub(super) fn write(source: &str, places: &dyn Places) -> Written {
    let events: Vec<_> = Parser::new_ext(source, Options::ENABLE_TABLES).collect();
    let mut writer = Writer {
        places,
        html: String::with_capacity(source.len() * 2),
        sections: vec![Section::default()],
        anchors: HashMap::new(),
        in_head: false,
        dead: Vec::new(),
        picture: None,
    };
    for (nth, event) in events.iter().enumerate() {
        writer.event(event, &events[nth + 1..]);
    }
    let title = writer.sections[0].heading.clone();
    Written {
        title,
        html: writer.html,
        sections: writer.sections,
    }
}

struct Writer<'w> {
    places: &'w dyn Places,
    html: String,
    sections: Vec<Section>,
    /// How often each anchor has been used.
    anchors: HashMap<String, usize>,
    in_head: bool,
    /// For each of the open links, whether it leads nowhere.
    dead: Vec<bool>,
    /// The open picture, and the start of the words that it replaces.
    picture: Option<(usize, String)>,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event<'_>, rest: &[Event<'_>]) {
        match event {
            Event::Start(tag) => self.start(tag, rest),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => self.text(text),
            Event::Code(code) => {
                self.html.push_str("<code>");
                self.text(code);
                self.html.push_str("</code>");
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>\n"),
            // The only HTML in documents is notes for those who check them.
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.html.push_str(&escaped(text));
        if let Some(section) = self.sections.last_mut() {
            section.text.push_str(text);
        }
    }

    fn start(&mut self, tag: &Tag<'_>, rest: &[Event<'_>]) {
        let html = match tag {
            Tag::Heading { level, .. } => return self.heading(*level, rest),
            Tag::CodeBlock(kind) => {
                self.html
                    .push_str("<div class=\"code\"><pre tabindex=\"0\">");
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let language = escaped(language);
                format!("<code data-language=\"{language}\">")
            }
            Tag::Link { dest_url, .. } => {
                let to = self.places.lead(dest_url);
                self.dead.push(to.is_none());
                match to {
                    Some(to) => format!("<a href=\"{}\">", escaped(&to)),
                    None => return,
                }
            }
            Tag::Image { dest_url, .. } => {
                let about = words(rest, TagEnd::Image);
                let shown = self.places.picture(dest_url, &about);
                self.picture = shown.map(|shown| (self.html.len(), shown));
                return;
            }
            Tag::TableHead => {
                self.in_head = true;
                "<thead><tr>".to_owned()
            }
            Tag::TableCell if !self.in_head => "<td>".to_owned(),
            // An empty heading would be read aloud as one.
            Tag::TableCell if matches!(rest, [Event::End(TagEnd::TableCell), ..]) => {
                "<td>".to_owned()
            }
            Tag::TableCell => "<th scope=\"col\">".to_owned(),
            Tag::List(Some(first)) if *first != 1 => format!("<ol start=\"{first}\">\n"),
            tag => plain(tag.to_end()).map_or_else(String::new, |(open, _)| open.to_owned()),
        };
        self.html.push_str(&html);
    }

    fn end(&mut self, tag: TagEnd) {
        let html = match tag {
            TagEnd::Heading(level) => {
                let is_title = self.sections.len() == 1;
                let depth = if is_title { 1 } else { depth(level) };
                format!("</h{depth}>\n")
            }
            TagEnd::CodeBlock => "</code></pre></div>\n".to_owned(),
            TagEnd::Link if self.dead.pop() == Some(true) => return,
            TagEnd::Link => "</a>".to_owned(),
            TagEnd::Image => {
                let Some((begun, shown)) = self.picture.take() else {
                    return;
                };
                self.html.truncate(begun);
                shown
            }
            TagEnd::TableHead => {
                self.in_head = false;
                "</tr></thead>\n<tbody>".to_owned()
            }
            TagEnd::TableCell if self.in_head && self.html.ends_with("<td>") => "</td>".to_owned(),
            TagEnd::TableCell if self.in_head => "</th>".to_owned(),
            TagEnd::TableCell => "</td>".to_owned(),
            tag => plain(tag).map_or_else(String::new, |(_, close)| close.to_owned()),
        };
        self.html.push_str(&html);
        if let Some(section) = self.sections.last_mut()
            && !matches!(tag, TagEnd::Link | TagEnd::Emphasis | TagEnd::Strong)
        {
            section.text.push('\n');
        }
    }

    /// Begins a section. The first heading is the page's own.
    fn heading(&mut self, level: HeadingLevel, rest: &[Event<'_>]) {
        let heading = words(rest, TagEnd::Heading(level));
        let depth = depth(level);
        let is_title = self.sections.len() == 1 && self.sections[0].heading.is_empty();
        if is_title {
            self.sections[0].heading.clone_from(&heading);
            self.html.push_str("<h1>");
            return;
        }
        let anchor = self.anchor(&heading);
        let begun = format!(
            "<h{depth} id=\"{anchor}\"><a class=\"anchor\" href=\"#{anchor}\" \
             aria-label=\"Link to this section\">#</a>"
        );
        self.html.push_str(&begun);
        self.sections.push(Section {
            depth,
            heading,
            anchor,
            text: String::new(),
        });
    }

    /// Names a heading as other Markdown renderers do, so that links work there and here.
    fn anchor(&mut self, heading: &str) -> String {
        let kept = heading.to_lowercase();
        let kept = kept.chars().filter_map(|one| match one {
            ' ' => Some('-'),
            '-' | '_' => Some(one),
            one => one.is_alphanumeric().then_some(one),
        });
        let anchor: String = kept.collect();
        let given = self.anchors.entry(anchor.clone()).or_default();
        let nth = *given;
        *given += 1;
        match nth {
            0 => anchor,
            nth => format!("{anchor}-{nth}"),
        }
    }
}

/// Returns the words up to the end of an element.
fn words(events: &[Event<'_>], end: TagEnd) -> String {
    let words = events.iter().take_while(|event| **event != Event::End(end));
    let words = words.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        Event::SoftBreak => Some(" "),
        _ => None,
    });
    words.collect()
}

/// Escapes text for a page, including attributes.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the depth of a heading. Only a page's title has the first rank.
fn depth(level: HeadingLevel) -> u8 {
    (level as u8).max(2)
}

/// Returns the tags of elements that have only one form.
fn plain(tag: TagEnd) -> Option<(&'static str, &'static str)> {
    Some(match tag {
        TagEnd::Paragraph => ("<p>", "</p>\n"),
        TagEnd::BlockQuote(_) => ("<blockquote>", "</blockquote>\n"),
        TagEnd::List(true) => ("<ol>\n", "</ol>\n"),
        TagEnd::List(false) => ("<ul>\n", "</ul>\n"),
        TagEnd::Item => ("<li>", "</li>\n"),
        TagEnd::Emphasis => ("<em>", "</em>"),
        TagEnd::Strong => ("<strong>", "</strong>"),
        TagEnd::Table => (
            "<div class=\"scroll\" tabindex=\"0\"><table>\n",
            "</tbody></table></div>\n",
        ),
        TagEnd::TableRow => ("<tr>", "</tr>\n"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links that begin with `ok` exist.
    struct Known;

    impl Places for Known {
        fn lead(&self, link: &str) -> Option<String> {
            link.starts_with("ok").then(|| format!("/docs/{link}"))
        }

        fn picture(&self, link: &str, about: &str) -> Option<String> {
            let to = self.lead(link)?;
            Some(format!("<img src=\"{to}\" alt=\"{}\">", escaped(about)))
        }
    }

    fn html(source: &str) -> String {
        write(source, &Known).html
    }

    #[test]
    fn links_to_known_documents_are_resolved_and_others_become_text() {
        assert_eq!(
            html("[a](ok.md) [b `c`](gone.md)"),
            "<p><a href=\"/docs/ok.md\">a</a> b <code>c</code></p>\n"
        );
    }

    #[test]
    fn a_picture_has_its_words_and_one_that_is_not_there_is_them() {
        assert_eq!(
            html("a ![b \"`c`\"](ok.png) [![d](ok)](ok)"),
            "<p>a <img src=\"/docs/ok.png\" alt=\"b &quot;c&quot;\"> \
             <a href=\"/docs/ok\"><img src=\"/docs/ok\" alt=\"d\"></a></p>\n"
        );
        assert_eq!(html("![b *c*](gone.png)"), "<p>b <em>c</em></p>\n");
        let written = write("# T\n![found by its words](ok.png)", &Known);
        assert!(written.sections[0].text.contains("found by its words"));
    }

    #[test]
    fn headings_are_named_as_elsewhere_and_apart_from_each_other() {
        let written = write(
            "# T `x`\n\ntext\n## 3. Open: an `ear_x`\n## Same\n## Same",
            &Known,
        );
        assert_eq!(written.title, "T x");
        let anchors: Vec<_> = written
            .sections
            .iter()
            .map(|one| one.anchor.as_str())
            .collect();
        assert_eq!(anchors, ["", "3-open-an-ear_x", "same", "same-1"]);
        assert!(
            written
                .html
                .starts_with("<h1>T <code>x</code></h1>\n<p>text</p>\n<h2 id=")
        );
    }

    #[test]
    fn what_is_for_who_checks_is_not_shown_and_markup_is_text() {
        assert_eq!(html("<!-- check: skip me -->\n"), "");
        assert!(html("```bash\na <b> && c\n```").contains("a &lt;b&gt; &amp;&amp; c"));
        assert_eq!(html("a <b onclick=x>y</b>"), "<p>a y</p>\n");
    }

    #[test]
    fn a_table_scrolls_in_its_frame_and_an_empty_heading_is_none() {
        let html = html("| | B |\n|---|---|\n| c | |\n");
        assert!(
            html.contains("<thead><tr><td></td><th scope=\"col\">B</th></tr></thead>"),
            "{html}"
        );
        assert!(
            html.contains("<tbody><tr><td>c</td><td></td></tr>\n</tbody>"),
            "{html}"
        );
        assert!(html.starts_with("<div class=\"scroll\""), "{html}");
    }
}
