//! What was checked and what was wrong.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::notes::Notes;

/// A difference.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) check: &'static str,
    /// The event, the position or the row.
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// The count of every check, and what it found wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) wrong: Vec<Wrong>,
}

impl Findings {
    /// Records one more comparison.
    pub(crate) fn judge(
        &mut self,
        check: &'static str,
        is_right: bool,
        what: impl Display,
        expected: impl Display,
        found: impl Display,
    ) {
        *self.counts.entry(check).or_default() += 1;
        if !is_right {
            self.wrong.push(Wrong {
                check,
                what: what.to_string(),
                expected: expected.to_string(),
                found: found.to_string(),
            });
        }
    }

    /// Lists a check that may have nothing to count.
    pub(crate) fn begin(&mut self, check: &'static str) {
        self.counts.entry(check).or_default();
    }

    /// Adds what readers saw during the run.
    pub(crate) fn readers(&mut self, notes: &Notes) {
        for (check, right) in notes.rights() {
            *self.counts.entry(check).or_default() += right;
        }
        for one in notes.complaints() {
            self.judge(one.check, false, one.what, one.expected, one.found);
        }
    }
}
