//! Reads a CONDITION step.

use schemas::workflow::Condition;

use super::shared::steps_of;
use super::templates;
use crate::object::Object;
use crate::template::Within;

pub(super) fn read(object: &mut Object<'_>) -> Option<Condition> {
    let test = object.required_string("if");
    if let Some(test) = &test {
        templates::check_test(object, "if", test, Within::Run);
    }
    let then = steps_of(object, "then");
    let otherwise = steps_of(object, "else");
    Some(Condition {
        test: test?,
        then: then?,
        otherwise: otherwise?,
    })
}
