//! CONDITION: takes one of two ways, as soon as it begins.

use domain::template::Test;
use schemas::run::Way;
use serde_json::{Value, json};

use super::{Done, Surroundings};

pub(super) fn begin(test: &Test, with: &Surroundings<'_>) -> Result<Done, String> {
    let holds = test.holds(with.scope, with.meter);
    let holds = holds.map_err(|error| error.at("if").to_string())?;
    Ok(Done {
        input: Value::Null,
        says: None,
        way: if holds { Way::Then } else { Way::Else },
        output: json!({ "result": holds }),
    })
}
