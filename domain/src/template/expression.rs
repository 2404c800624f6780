//! One expression, compiled.

use minijinja::machinery::parse_expr;
use minijinja::{Error as JinjaError, ErrorKind};
use serde_json::Value as Json;

use super::address::Section;
use super::filters::ENVIRONMENT;
use super::guard::{self, Names, Usage};
use super::scope::Open;
use super::value::{to_json, to_text};
use super::{Error, References};

/// The memory of a compiled expression, and of each byte of its source with guards: more than was
/// measured. Most of the first is space that the engine reserves for instructions, however few.
const BYTES: usize = 12 * 1_024;
const BYTES_PER_BYTE: usize = 24;

/// An expression that has been checked and compiled, with guards around what could grow.
#[derive(Debug)]
pub(super) struct Expression {
    source: String,
    program: minijinja::Expression<'static, 'static>,
    references: References,
    section: Section,
    fills: bool,
    bytes: usize,
}

impl Expression {
    pub(super) fn parse(source: &str, names: Names, usage: Usage) -> Result<Self, Error> {
        let failed = |error: &JinjaError| Error::of(source, &reason(error));
        let parsed = parse_expr(source).map_err(|error| failed(&error))?;
        let guarded = guard::guard(source, &parsed, names, usage);
        let guarded = guarded.map_err(|reason| Error::of(source, &reason))?;
        let bytes = BYTES + source.len() + BYTES_PER_BYTE * guarded.source.len();
        let program = ENVIRONMENT.compile_expression_owned(guarded.source);
        Ok(Self {
            source: source.trim().to_owned(),
            program: program.map_err(|error| failed(&error))?,
            references: guarded.references,
            section: guarded.section,
            fills: guarded.fills,
            bytes,
        })
    }

    /// The section of an address after it.
    pub(super) fn section(&self) -> Section {
        self.section
    }

    /// Whether it puts values into an address's path or after it.
    pub(super) fn fills(&self) -> bool {
        self.fills
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn references(&self) -> &References {
        &self.references
    }

    /// Its value, of any type.
    pub(super) fn value(&self, names: &Open) -> Result<Json, Error> {
        let value = self.program.eval(names.names.clone());
        let json = value.and_then(|value| to_json(&value, names.meter.means()));
        json.map_err(|error| self.failed(&error))
    }

    /// Whether it is true.
    pub(super) fn is_true(&self, names: &Open) -> Result<bool, Error> {
        let value = self.program.eval(names.names.clone());
        match value {
            Ok(value) if value.is_undefined() => {
                Err(self.failed(&JinjaError::from(ErrorKind::UndefinedError)))
            }
            Ok(value) => Ok(value.is_true()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Its value within text.
    pub(super) fn text(&self, names: &Open) -> Result<String, Error> {
        let value = self.program.eval(names.names.clone());
        let text = value.and_then(|value| to_text(&value, names.meter.means()));
        text.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &JinjaError) -> Error {
        Error::of(&self.source, &reason(error))
    }
}

fn reason(error: &JinjaError) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, _) => "undefined; use default() if it may be absent".to_owned(),
        (ErrorKind::OutOfFuel, None) => "takes too many steps".to_owned(),
        (ErrorKind::InvalidOperation | ErrorKind::OutOfFuel, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}
