//! What is wrong with a template, and where.

use std::fmt;

use crate::text::shortened;

/// How many characters of an expression or message an error quotes.
const QUOTED: usize = 200;

/// A template that cannot be taken or rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The place within the value it is in, such as `body.email`; empty for a lone string.
    pub place: String,
    /// The expression, without its braces; `None` where the string as a whole is wrong.
    pub expression: Option<String>,
    /// What is wrong, for people.
    pub reason: String,
}

impl Error {
    pub(super) fn whole(reason: impl Into<String>) -> Self {
        Self {
            place: String::new(),
            expression: None,
            reason: reason.into(),
        }
    }

    pub(super) fn of(expression: &str, reason: &str) -> Self {
        Self {
            place: String::new(),
            expression: Some(shortened(expression.trim(), QUOTED)),
            reason: shortened(reason, QUOTED),
        }
    }

    /// The same error seen from one level further out: `key` is such as `.email` or `[2]`.
    #[must_use]
    pub(super) fn within(mut self, key: &str) -> Self {
        self.place.insert_str(0, key);
        self
    }

    /// The same error below a named place, such as `steps[2].body`.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        let joined = self.place.is_empty() || self.place.starts_with(['.', '[']);
        self.within(&if joined || place.is_empty() {
            place.to_owned()
        } else {
            format!("{place}.")
        })
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.trim_start_matches('.');
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        if let Some(expression) = &self.expression {
            write!(f, "{{{{ {expression} }}}}: ")?;
        }
        f.write_str(&self.reason)
    }
}
