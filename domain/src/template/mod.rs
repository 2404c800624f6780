//! Templates: strings of a workflow's definition that hold `MiniJinja` expressions.
//!
//! A string with `{{ … }}` is a template. One that is a single `{{ … }}` keeps its value's type;
//! in all others values are written into the text, strings as they are and everything else as
//! JSON. Only expressions are supported (with filters, tests and `a if b else c`), no `{% … %}`
//! statements: what has no loops and no state cannot run away.
//!
//! A condition in a definition is a single expression without braces ([`Test`]).
//!
//! Rendering is paid for in advance by a [`Meter`], whatever the expression. Where a template is
//! an address, values are kept within their places in it ([`Address`]).
//!
//! Names: `trigger`, `steps.<id>.output`, `run.id` and `secrets.<NAME>`, and an event's `data`
//! where one is tested. The output of a step that has not succeeded is absent (`absent.rs`); every
//! other name without a value is an error. A secret may only be inserted as it is or joined to
//! other text, so that wherever its value turns up again it can be recognised and left out
//! ([`Scrub`]).

mod absent;
mod address;
mod error;
mod expression;
mod filters;
mod guard;
mod meter;
mod scan;
mod scope;
mod scrub;
mod test;
mod tree;
mod value;

use std::collections::BTreeSet;

use serde_json::Value;

pub use address::Address;
pub use error::Error;
pub use meter::Meter;
pub use scope::{Scope, Secrets, Shown};
pub use scrub::{MASK, Scrub};
pub use test::{Test, Within};
pub use tree::Tree;

use expression::Expression;
use guard::{OF_A_RUN, Usage};
use scan::Piece;

/// The steps and secrets that a template needs to be rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Steps whose output it names.
    pub steps: BTreeSet<String>,
    /// Secrets that it names.
    pub secrets: BTreeSet<String>,
}

impl References {
    fn add(&mut self, other: &Self) {
        self.steps.extend(other.steps.iter().cloned());
        self.secrets.extend(other.secrets.iter().cloned());
    }
}

/// Whether a string is a template.
pub fn is_template(source: &str) -> bool {
    source.contains("{{")
}

/// Checks a string of a definition before it is saved: it must parse and may only use names that
/// exist. Returns what it refers to.
pub fn check(source: &str) -> Result<References, Error> {
    Template::parse(source).map(|template| template.references)
}

/// Like [`check`], for an address.
pub fn check_address(source: &str) -> Result<References, Error> {
    Address::parse(source).map(|address| address.references().clone())
}

/// Like [`check`], for every string of a JSON value; errors name the place within it.
pub fn check_tree(value: &Value) -> Result<References, Error> {
    Tree::parse(value).map(|tree| tree.references())
}

/// A string that can be rendered repeatedly.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Part>,
    references: References,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Expression(Expression),
}

impl Template {
    /// Parses a string; one without `{{` is only text.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut references = References::default();
        let mut parts = Vec::new();
        for piece in scan::pieces(source)? {
            parts.push(match piece {
                Piece::Text(text) => Part::Text(text.to_owned()),
                Piece::Expression(source) => {
                    let expression = Expression::parse(source, OF_A_RUN, Usage::Inserted)?;
                    references.add(expression.references());
                    Part::Expression(expression)
                }
            });
        }
        Ok(Self { parts, references })
    }

    /// What it refers to.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Its value within a run.
    pub fn render(&self, scope: &Scope, secrets: &Secrets, meter: &Meter) -> Result<Value, Error> {
        self.render_with(&scope.open(secrets, meter))
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Expression(expression) => expression.bytes(),
        });
        size_of::<Self>() + parts.sum::<usize>()
    }

    fn render_with(&self, names: &scope::Open) -> Result<Value, Error> {
        match self.parts.as_slice() {
            [] => Ok(Value::String(String::new())),
            [Part::Text(text)] => Ok(Value::String(text.clone())),
            [Part::Expression(only)] => only.value(names),
            parts => parts
                .iter()
                .try_fold(String::new(), |mut text, part| {
                    match part {
                        Part::Text(piece) => text.push_str(piece),
                        Part::Expression(expression) => text.push_str(&expression.text(names)?),
                    }
                    Ok(text)
                })
                .map(Value::String),
        }
    }
}

#[cfg(test)]
mod tests;
