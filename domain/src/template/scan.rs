//! Splits a string into text and expressions.

use super::Error;

/// How long one expression may be, and how many one string may have: far more than a person
/// writes, far less than it takes to exhaust the parser.
const MAX_EXPRESSION: usize = 2_048;
const MAX_EXPRESSIONS: usize = 256;
/// How many signs may follow each other; the parser descends one level for each.
const MAX_SIGNS: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// Without its braces.
    Expression(&'a str),
}

/// The pieces of a string in order.
pub(super) fn pieces(source: &str) -> Result<Vec<Piece<'_>>, Error> {
    let mut pieces = Vec::new();
    let mut expressions = 0;
    let mut rest = source;
    while let Some(open) = rest.find("{{") {
        let inside = &rest[open + 2..];
        let close = end_of_expression(inside)
            .ok_or_else(|| Error::of(inside, "the braces are not closed"))?;
        let (expression, trim_before, trim_after) = without_trim_marks(&inside[..close]);
        within_limits(expression)?;
        push_text(&mut pieces, trimmed(&rest[..open], trim_before));
        pieces.push(Piece::Expression(expression));
        rest = &inside[close + 2..];
        if trim_after {
            rest = rest.trim_start();
        }
        expressions += 1;
        if expressions > MAX_EXPRESSIONS {
            let reason = format!("more than {MAX_EXPRESSIONS} expressions in one string");
            return Err(Error::whole(reason));
        }
    }
    push_text(&mut pieces, rest);
    if expressions > 0 {
        no_statements(&pieces)?;
    }
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// `{{-` and `-}}` remove the white space around them.
fn without_trim_marks(inside: &str) -> (&str, bool, bool) {
    let (inside, before) = match inside.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (inside, false),
    };
    match inside.strip_suffix('-') {
        Some(rest) => (rest, before, true),
        None => (inside, before, false),
    }
}

fn trimmed(text: &str, end: bool) -> &str {
    if end { text.trim_end() } else { text }
}

/// The position of the `}}` that ends an expression: not within quotes or brackets.
fn end_of_expression(inside: &str) -> Option<usize> {
    let bytes = inside.as_bytes();
    let (mut depth, mut quote, mut at) = (0_usize, None, 0);
    while let Some(byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if *byte == open => quote = None,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b'}') if depth == 0 && bytes.get(at + 1) == Some(&b'}') => return Some(at),
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (Some(_) | None, _) => {}
        }
        at += 1;
    }
    None
}

/// Checks an expression before it is parsed.
pub(super) fn within_limits(expression: &str) -> Result<(), Error> {
    if expression.trim().is_empty() {
        return Err(Error::of(expression, "an expression is missing"));
    }
    if expression.len() > MAX_EXPRESSION {
        let reason = format!("longer than {MAX_EXPRESSION} bytes");
        return Err(Error::of(expression, &reason));
    }
    let mut signs = 0;
    for byte in expression.bytes().filter(|b| !b.is_ascii_whitespace()) {
        signs = if byte == b'-' { signs + 1 } else { 0 };
        if signs > MAX_SIGNS {
            return Err(Error::of(expression, "too many signs in a row"));
        }
    }
    Ok(())
}

/// `{%` and `{#` have a meaning in a whole `MiniJinja` template: an error that they are not
/// supported is better than silently writing them out.
fn no_statements(pieces: &[Piece<'_>]) -> Result<(), Error> {
    let marks = ["{%", "{#"];
    let statement = pieces.iter().any(
        |piece| matches!(piece, Piece::Text(text) if marks.iter().any(|mark| text.contains(mark))),
    );
    if statement {
        return Err(Error::whole(
            "only {{ expressions }} are supported, no {% statements %} or {# comments #}",
        ));
    }
    Ok(())
}
