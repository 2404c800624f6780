//! The values of one record, by the names of their fields.

use serde_json::{Map, Value};

use super::kind::Kind;
use super::value::Given;
use crate::FieldError;
use crate::text::{json_type, shown};

/// The fields that every kind has. `updatedAt` cannot be set, but it is part of every file and
/// response, so sending it back is not an error.
const COMMON: [&str; 3] = ["id", "createdAt", "updatedAt"];

/// The given values of a record, before they are read.
#[derive(Debug)]
pub(super) enum Values<'a> {
    /// An object; a field of a nested object is named `outer.inner`.
    Object(Map<String, Value>),
    /// A row of cells under column names.
    Row {
        names: &'a [String],
        cells: Vec<&'a str>,
    },
}

impl Values<'_> {
    /// Takes an object of which the kind knows all fields.
    pub(super) fn of_object(
        kind: Kind,
        mut fields: Map<String, Value>,
    ) -> Result<Self, FieldError> {
        for name in fields.keys() {
            let flat = !name.contains('.') && is_known(kind, name);
            if !flat && !kind.groups().contains(&name.as_str()) {
                return Err(unknown(name));
            }
        }
        for group in kind.groups() {
            match fields.swap_remove(*group) {
                None | Some(Value::Null) => {}
                Some(Value::Object(inner)) => {
                    for (name, value) in inner {
                        let name = known(kind, format!("{group}.{name}"))?;
                        fields.insert(name, value);
                    }
                }
                Some(other) => {
                    let reason = format!("must be an object, not {}", json_type(&other));
                    return Err(FieldError::new(*group, reason));
                }
            }
        }
        Ok(Self::Object(fields))
    }

    /// Takes the value of a field.
    pub(super) fn take(&mut self, name: &str) -> Given<'_> {
        match self {
            Self::Object(fields) => match fields.swap_remove(name) {
                None | Some(Value::Null) => Given::Absent,
                Some(value) => Given::Json(value),
            },
            Self::Row { names, cells } => {
                let place = names.iter().position(|known| known == name);
                match place.and_then(|place| cells.get(place)) {
                    None | Some(&"") => Given::Absent,
                    Some(cell) => Given::Cell(cell),
                }
            }
        }
    }
}

/// Checks that a name is a field of the kind.
pub(super) fn known(kind: Kind, name: String) -> Result<String, FieldError> {
    if is_known(kind, &name) {
        Ok(name)
    } else {
        Err(unknown(&name))
    }
}

fn is_known(kind: Kind, name: &str) -> bool {
    kind.field_names().contains(&name) || COMMON.contains(&name)
}

fn unknown(name: &str) -> FieldError {
    FieldError::new(shown(name), "unknown field")
}
