//! Breaking a cell's text into lines.

use super::shaping::runs_left;
use super::typeface::Typeface;

/// Placed at the end of shortened text.
pub(super) const ELLIPSIS: char = '…';

/// One line of a cell: a part of its text, as byte positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether the text continues after the visible part.
    pub(super) shortened: bool,
    /// Whether the whole text runs from right to left.
    pub(super) runs_left: bool,
}

/// The limits of wrapped text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// The width of a line.
    pub(super) width: f32,
    /// The font size.
    pub(super) size: f32,
    /// Maximum number of lines. Text that does not fit is shortened.
    pub(super) max_lines: usize,
}

/// Breaks `text` into lines, between words where possible, and adds them to `lines`.
pub(super) fn wrap(text: &str, fit: Fit, typeface: &mut Typeface, lines: &mut Vec<Line>) {
    let limit = fit.width / fit.size;
    let first = lines.len();
    let runs_left = runs_left(text);
    let mut start = 0;
    while start < text.len() {
        let end = line_end(text, start, limit, typeface);
        lines.push(Line {
            start,
            end,
            shortened: false,
            runs_left,
        });
        start = end + spaces(&text[end..]);
        if lines.len() - first == fit.max_lines && start < text.len() {
            shorten(text, limit, typeface, lines);
            return;
        }
    }
}

/// Returns the part of the text that fits on one line, visibly shortened if it is not all.
pub(super) fn on_one_line(text: &str, width: f32, size: f32, typeface: &mut Typeface) -> String {
    let fit = Fit {
        width,
        size,
        max_lines: 1,
    };
    let mut lines = Vec::new();
    wrap(text, fit, typeface, &mut lines);
    let line = lines.first().map_or("", |line| &text[line.start..line.end]);
    let shortened = lines.iter().any(|line| line.shortened);
    format!("{line}{}", if shortened { "…" } else { "" })
}

/// Returns the end of the line that begins at `start`: the text's end, else between words, else
/// within a compound, else after the last character that fits.
fn line_end(text: &str, start: usize, limit: f32, typeface: &mut Typeface) -> usize {
    let mut width = 0.0;
    let (mut between_words, mut within_compound) = (None, None);
    let mut previous = None;
    for (at, c) in text[start..].char_indices() {
        let at = start + at;
        match previous {
            Some(before) if before == ' ' || c == '@' => between_words = Some(at),
            Some('-' | '/' | '.' | '_' | ',' | ';') => within_compound = Some(at),
            _ => {}
        }
        width += typeface.glyph(c).width;
        if width > limit && at > start && c != ' ' {
            let end = between_words.or(within_compound).unwrap_or(at);
            return start + text[start..end].trim_end_matches(' ').len();
        }
        previous = Some(c);
    }
    start + text[start..].trim_end_matches(' ').len()
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Makes room for an ellipsis at the end of the last line.
fn shorten(text: &str, limit: f32, typeface: &mut Typeface, lines: &mut [Line]) {
    let Some(line) = lines.last_mut() else {
        return;
    };
    let limit = limit - typeface.glyph(ELLIPSIS).width;
    let mut width = 0.0;
    let mut end = line.start;
    for (at, c) in text[line.start..].char_indices() {
        width += typeface.glyph(c).width;
        if width > limit {
            break;
        }
        end = line.start + at + c.len_utf8();
    }
    line.end = end;
    line.shortened = true;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::regular;
    use super::*;

    fn lines(text: &str, width: f32, max_lines: usize) -> Vec<String> {
        let mut typeface = regular();
        let mut lines = Vec::new();
        let fit = Fit {
            width,
            size: 10.0,
            max_lines,
        };
        wrap(text, fit, &mut typeface, &mut lines);
        lines
            .iter()
            .map(|line| {
                let end = if line.shortened { "…" } else { "" };
                format!("{}{end}", &text[line.start..line.end])
            })
            .collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(
            lines("Head of Procurement", 60.0, 4),
            ["Head of", "Procurement"]
        );
        assert_eq!(
            lines("anna.schmidt@example.com", 70.0, 4),
            ["anna.schmidt", "@example.com"]
        );
    }

    #[test]
    fn long_words_break_anywhere() {
        assert_eq!(lines("abcdefghij", 26.0, 4).concat(), "abcdefghij");
    }

    #[test]
    fn what_does_not_fit_is_shortened_visibly() {
        let lines = lines("one two three four five", 22.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'), "{lines:?}");
    }

    #[test]
    fn one_line_is_whole_or_shortened() {
        let mut typeface = regular();
        assert_eq!(on_one_line("Acme", 60.0, 10.0, &mut typeface), "Acme");
        assert_eq!(on_one_line("", 60.0, 10.0, &mut typeface), "");
        let long = on_one_line(&"Acme & Söhne ".repeat(20), 90.0, 10.0, &mut typeface);
        assert!(
            long.starts_with("Acme & Söhne A") && long.ends_with('…'),
            "{long}"
        );
        assert!(typeface.width(&long, 10.0) <= 90.0, "{long}");
    }

    proptest! {
        #[test]
        fn every_line_fits_and_nothing_but_spaces_is_lost(
            text in "[a-zA-Zéßя@./ -]{0,60}", width in 20.0..200.0_f32,
        ) {
            let mut typeface = regular();
            let lines = lines(&text, width, usize::MAX);
            for line in &lines {
                let one = line.chars().count() == 1;
                prop_assert!(one || typeface.width(line, 10.0) <= width + 0.01, "{line:?}");
            }
            let without_spaces = |text: &str| text.replace(' ', "");
            prop_assert_eq!(without_spaces(&lines.concat()), without_spaces(&text));
        }
    }
}
