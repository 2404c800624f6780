//! Checks the templates in a definition.

use std::collections::{BTreeSet, HashSet};

use schemas::workflow::{Action, Http, Step};
use serde_json::{Map, Value};

use crate::object::{Errors, Object};
use crate::template::{self, References, Test, Within};

/// Checks a string that may be a template.
pub(super) fn check(object: &Object<'_>, name: &str, text: &str) {
    report(object, name, template::check(text));
}

/// Checks a string that may be a template of an address.
pub(super) fn check_address(object: &Object<'_>, name: &str, text: &str) {
    report(object, name, template::check_address(text));
}

/// Checks every string of a value.
pub(super) fn check_within(object: &Object<'_>, name: &str, value: &Value) {
    report(object, name, template::check_tree(value));
}

/// Like [`check_within`], for what is written into an event that every reader of the feed sees.
pub(super) fn check_published(object: &Object<'_>, name: &str, value: &Value) {
    match template::check_tree(value) {
        Ok(references) => {
            for secret in &references.secrets {
                let reason = format!(
                    "uses secrets.{secret}; secrets are not allowed here because events are \
                     readable"
                );
                object.error(name, reason);
            }
        }
        Err(error) => report(object, name, Err(error)),
    }
}

/// Checks an expression that is a condition.
pub(super) fn check_test(object: &Object<'_>, name: &str, source: &str, within: Within) {
    let judged = Test::parse(source, within);
    report(object, name, judged.map(|test| test.references().clone()));
}

fn report(object: &Object<'_>, name: &str, judged: Result<References, template::Error>) {
    if let Err(error) = judged {
        let mut error = error.at(&object.place_of(name));
        let place = std::mem::take(&mut error.place);
        object.errors().add(place, error.to_string());
    }
}

/// Checks whether the outputs that steps name can exist: `before(nth)` are the ids of the steps on
/// the ways to a step.
pub(super) fn check_references<'s>(
    steps: &'s [Step],
    before: impl Fn(usize) -> HashSet<&'s str>,
    errors: &Errors,
) {
    for (nth, step) in steps.iter().enumerate() {
        let named = named_steps(step);
        if named.is_empty() {
            continue;
        }
        let before = before(nth);
        for id in named.iter().filter(|id| !before.contains(id.as_str())) {
            let reason = format!("uses steps.{id}, but no step with this id comes before it");
            errors.add(format!("steps[{nth}]"), reason);
        }
    }
}

/// The steps whose output a step names; its templates have been checked before.
fn named_steps(step: &Step) -> BTreeSet<String> {
    match &step.action {
        Action::Trigger(_) | Action::Delay(_) => BTreeSet::new(),
        Action::Notify(notify) => within(&notify.data),
        Action::Record(record) => {
            let id = record.record_id.iter();
            let id = id.flat_map(|id| of(template::check(id)));
            id.chain(within(&record.data)).collect()
        }
        Action::Condition(condition) => of_test(&condition.test, Within::Run),
        Action::WaitForEvent(wait) => {
            let test = wait.matching.iter();
            test.flat_map(|test| of_test(test, Within::Both)).collect()
        }
        Action::Http(Http {
            url, headers, body, ..
        }) => {
            let texts = headers.values().chain([url]);
            let texts = texts.flat_map(|text| of(template::check(text)));
            texts
                .chain(body.iter().flat_map(|body| of(template::check_tree(body))))
                .collect()
        }
    }
}

fn within(fields: &Map<String, Value>) -> BTreeSet<String> {
    let values = fields.values();
    values
        .flat_map(|value| of(template::check_tree(value)))
        .collect()
}

fn of_test(source: &str, within: Within) -> BTreeSet<String> {
    of(Test::parse(source, within).map(|test| test.references().clone()))
}

fn of(judged: Result<References, template::Error>) -> BTreeSet<String> {
    judged
        .map(|references| references.steps)
        .unwrap_or_default()
}
