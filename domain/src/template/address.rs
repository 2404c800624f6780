//! Templates of addresses.
//!
//! The author writes the address; a value only fills its place. In the path and after it, a value
//! is one percent-encoded component, so that it cannot lead to another place. For the host it may
//! only be a host. An expression at the very beginning is the address itself, or its beginning,
//! and stays as it is: the author of `{{ trigger.callbackUrl }}` means that.

use serde_json::Value;

use super::expression::Expression;
use super::filters::{AUTHORITY, COMPONENT, SCHEME};
use super::guard::{OF_A_RUN, Usage};
use super::scan::{self, Piece};
use super::{Error, Meter, Part, References, Scope, Secrets, Template};

/// The part of an address that something is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// At its beginning.
    Start,
    /// Before `://`.
    Scheme,
    /// The path and what follows it.
    Rest,
    /// Between `//` and the path.
    Authority,
}

impl Section {
    /// The section after a text of the author's.
    pub(super) fn behind(self, text: &str) -> Self {
        let host = match self {
            Self::Rest => return self,
            Self::Authority => text,
            Self::Start | Self::Scheme => match text.split_once("://") {
                Some((_, host)) => host,
                None if text.is_empty() => return self,
                None => return Self::Rest,
            },
        };
        if host.contains(['/', '\\', '?', '#']) {
            Self::Rest
        } else {
            Self::Authority
        }
    }

    /// The section after a value.
    pub(super) fn behind_value(self) -> Self {
        match self {
            // The value has been the address, or its beginning.
            Self::Start => Self::Rest,
            other => other,
        }
    }

    /// The section after one of two alternatives: the one in which less is allowed.
    pub(super) fn or(self, other: Self) -> Self {
        self.max(other)
    }

    /// The filter that a value passes through here.
    pub(super) fn filter(self) -> Option<&'static str> {
        match self {
            Self::Start => None,
            Self::Scheme => Some(SCHEME),
            Self::Authority => Some(AUTHORITY),
            Self::Rest => Some(COMPONENT),
        }
    }
}

/// An address with expressions in it, which can be rendered repeatedly.
#[derive(Debug)]
pub struct Address {
    template: Template,
    /// Whether there are values in its path or after it.
    filled: bool,
}

impl Address {
    /// Parses an address; one without `{{` is taken as it is.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut references = References::default();
        let mut parts = Vec::new();
        let mut section = Section::Start;
        let mut filled = false;
        let mut pieces = scan::pieces(source)?.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            parts.push(match piece {
                Piece::Text(text) => {
                    section = section.behind(text);
                    Part::Text(text.to_owned())
                }
                Piece::Expression(source) => {
                    if section == Section::Start && pieces.peek().is_some_and(is_behind_scheme) {
                        section = Section::Scheme;
                    }
                    let usage = Usage::Address(section);
                    let expression = Expression::parse(source, OF_A_RUN, usage)?;
                    section = expression.section();
                    filled |= expression.fills();
                    references.add(expression.references());
                    Part::Expression(expression)
                }
            });
        }
        let template = Template { parts, references };
        Ok(Self { template, filled })
    }

    /// What it refers to.
    pub fn references(&self) -> &References {
        &self.template.references
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.template.bytes()
    }

    /// The address within a run.
    pub fn render(&self, scope: &Scope, secrets: &Secrets, meter: &Meter) -> Result<String, Error> {
        let address = match self.template.render(scope, secrets, meter)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        if self.filled && has_dot_segment(&address) {
            let reason = "a value makes a part of the path . or .., which leads elsewhere";
            return Err(Error::whole(reason));
        }
        Ok(address)
    }
}

fn is_behind_scheme(piece: &Piece<'_>) -> bool {
    matches!(piece, Piece::Text(text) if text.starts_with("://"))
}

/// Whether a segment of the path means the current directory or its parent.
fn has_dot_segment(address: &str) -> bool {
    let behind_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
    let path = behind_scheme.split(['?', '#']).next().unwrap_or_default();
    let segments = path.split(['/', '\\']).skip(1);
    let mut plain = segments.map(|segment| segment.to_ascii_lowercase().replace("%2e", "."));
    plain.any(|segment| segment == "." || segment == "..")
}

/// Encodes one component of a path or query: only what has no meaning there stays as it is. The
/// mask of secrets does.
pub(super) fn component(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!*'()".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(digit), 16).unwrap_or_default();
                encoded.push(digit.to_ascii_uppercase());
            }
        }
    }
    encoded
}

/// A host, with a port if there is one; or the mask.
pub(super) fn authority(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]*".contains(&byte);
    if text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err("is the host and may only contain letters, digits, - _ . and a port".to_owned())
}

/// A scheme; or the mask.
pub(super) fn scheme(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.*".contains(&byte);
    if text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err("is the scheme and may only contain letters".to_owned())
}
