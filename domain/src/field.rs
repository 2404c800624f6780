//! Errors that name the field they are about.

use std::fmt;

/// A field whose value is not accepted, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct FieldError {
    /// The field or the place within the input, such as `email` or `steps[2].url`.
    pub field: String,
    /// What is wrong with it, for people.
    pub reason: String,
}

impl FieldError {
    /// Creates an error about a field.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// How many errors are spelled out; a reader would not follow a longer list.
const SPELLED_OUT: usize = 10;

/// The errors of an input; there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(Vec<FieldError>);

impl Invalid {
    /// The errors, in the order of the input.
    pub fn errors(&self) -> &[FieldError] {
        &self.0
    }

    /// Returns `Ok` if there are no errors, else all of them.
    pub(crate) fn unless_empty(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self(errors))
        }
    }
}

impl From<FieldError> for Invalid {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, error) in self.0.iter().take(SPELLED_OUT).enumerate() {
            if nth > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        match self.0.len().saturating_sub(SPELLED_OUT) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
