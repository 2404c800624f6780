//! Expressions that are conditions.

use super::expression::Expression;
use super::guard::{Names, OF_A_RUN, OF_AN_EVENT, OF_BOTH, Usage};
use super::{Error, Meter, References, Scope, Secrets, is_template, scan};

/// What a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// A run: `trigger`, `steps` and `run`.
    Run,
    /// An event: `data`.
    Event,
    /// An event as a run sees it: `data` beside the run's names.
    Both,
}

impl Within {
    const fn names(self) -> Names {
        match self {
            Self::Run => OF_A_RUN,
            Self::Event => OF_AN_EVENT,
            Self::Both => OF_BOTH,
        }
    }
}

/// A condition that can be evaluated repeatedly.
#[derive(Debug)]
pub struct Test(Expression);

impl Test {
    /// Parses an expression, which has no braces.
    pub fn parse(source: &str, within: Within) -> Result<Self, Error> {
        if is_template(source) {
            return Err(Error::whole("is an expression: write it without {{ }}"));
        }
        scan::within_limits(source)?;
        Expression::parse(source, within.names(), Usage::Used).map(Self)
    }

    /// What it refers to.
    pub fn references(&self) -> &References {
        self.0.references()
    }

    /// Whether it is true: 0, empty text, empty lists and nothing count as `false`.
    pub fn holds(&self, scope: &Scope, meter: &Meter) -> Result<bool, Error> {
        self.0.is_true(&scope.open(&Secrets::Masked, meter))
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
