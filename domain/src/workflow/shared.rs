//! Fields that steps of several types have.

use std::ops::RangeInclusive;

use schemas::StepId;
use schemas::nesting::MAX_LEVELS;

use crate::object::Object;

/// Steps that may follow on one way.
const MAX_NEXT: usize = 100;
/// How long a step may wait: a year.
pub(super) const SECONDS: RangeInclusive<f64> = 0.0..=31_536_000.0;

/// Checks how many levels of arrays and objects a field has.
pub(super) fn check_levels(object: &Object<'_>, name: &str, levels: usize) {
    if levels > MAX_LEVELS {
        let reason = format!("must not be nested more than {MAX_LEVELS} levels deep");
        object.error(name, reason);
    }
}

/// Reads a list of steps that follow.
pub(super) fn steps_of(object: &mut Object<'_>, name: &str) -> Option<Vec<StepId>> {
    if object.take_absent(name) {
        return Some(Vec::new());
    }
    let steps = object.strings(name, MAX_NEXT)?;
    for (nth, id) in steps.iter().enumerate() {
        if steps[..nth].contains(id) {
            object.error(&format!("{name}[{nth}]"), "lists the same step twice");
        }
    }
    Some(steps.into_iter().map(StepId::new).collect())
}
