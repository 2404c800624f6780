//! NOTIFY: an event of the user's own.
//!
//! It is written to the run's stream in the same commit as the step's success, so it is in the
//! feed exactly once, however often the step is begun.

use domain::template::{Secrets, Tree};
use schemas::run::Way;
use schemas::workflow::Notify;
use schemas::{Custom, Event};
use serde_json::{Value, json};

use super::{Done, Surroundings, within_bounds};

pub(super) fn begin(notify: &Notify, data: &Tree, with: &Surroundings<'_>) -> Result<Done, String> {
    // Events are public: definitions with secrets here are not saved, and would show masks.
    let rendered = data.render(with.scope, &Secrets::Masked, with.meter);
    let rendered = rendered.map_err(|error| error.at("data").to_string())?;
    within_bounds("data", &rendered)?;
    let Value::Object(fields) = rendered.clone() else {
        return Err("data: must be an object".to_owned());
    };
    let event = Event::Custom(Custom {
        name: notify.event.clone(),
        data: fields,
    });
    Ok(Done {
        input: rendered,
        way: Way::Next,
        output: json!({ "event": event.name() }),
        says: Some(event),
    })
}
