//! TRIGGER: where a run begins. Its payload is in the trigger's own event, so it is not repeated
//! here.

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
