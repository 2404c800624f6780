//! TRIGGER: where a run begins. What it was triggered with stands in the trigger's own event, so
//! nothing of it is repeated here.

use schemas::run::Way;
use serde_json::Value;

use super::Done;

pub(super) fn begin() -> Done {
    Done {
        input: Value::Null,
        says: None,
        way: Way::Next,
        output: Value::Null,
    }
}
