//! The public data of each type of event.

use schemas::{CATALOG, CatalogEntry, Visibility};
use serde_json::{Map, Value, json};

/// Custom events, with any name after the dot.
pub(super) const CUSTOM: &str = "custom.name";

/// Fields that are stored in the log but shown to no one.
const HIDDEN: &[&str] = &["keySha256", "secret", "sealed", "audience"];

/// Every public type, and the schemas of their data.
pub(super) struct PublicEvents {
    pub(super) types: Vec<&'static str>,
    pub(super) schemas: Map<String, Value>,
}

impl PublicEvents {
    pub(super) fn gather() -> Self {
        let public = |entry: &&CatalogEntry| entry.visibility == Visibility::Public;
        let mut events = Self {
            types: Vec::new(),
            schemas: Map::new(),
        };
        for entry in CATALOG.iter().filter(public) {
            events.add(entry);
        }
        events.types.push(CUSTOM);
        let any = json!({"type": "object", "description": "As the NOTIFY step gave it."});
        events.schemas.insert(CUSTOM.to_owned(), any);
        events
    }

    fn add(&mut self, entry: &CatalogEntry) {
        let mut schema = entry.json_schema();
        redirect(entry.name, &mut schema);
        let Value::Object(mut schema) = schema else {
            return;
        };
        schema.remove("$schema");
        // Named as in the JSON Schema draft that AsyncAPI builds on.
        if let Some(definitions) = schema.remove("$defs") {
            schema.insert("definitions".to_owned(), definitions);
        }
        show(entry.name, &mut schema);
        self.schemas.insert(entry.name.to_owned(), schema.into());
        self.types.push(entry.name);
    }
}

/// A type's definitions are kept within its own schema: other types may use the same names.
fn redirect(owner: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::String(to) if name == "$ref" => {
                        let own = format!("#/components/schemas/{owner}/definitions/");
                        *to = to.replace("#/$defs/", &own);
                    }
                    other => redirect(owner, other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(owner, item)),
        _ => {}
    }
}

/// Removes hidden fields, and adds those that are unsealed before they are shown. They are absent
/// once their person was forgotten, so they are never required.
fn show(name: &str, schema: &mut Map<String, Value>) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !HIDDEN.iter().any(|hidden| name == hidden));
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    properties.retain(|name, _| !HIDDEN.contains(&name.as_str()));
    if let Value::Object(unsealed) = unsealed(name) {
        properties.extend(unsealed);
    }
}

fn unsealed(name: &str) -> Value {
    let optional = |kind: &str| json!({"type": [kind, "null"]});
    match name {
        "location.updated" => json!({
            "lat": {"type": "number"}, "lng": {"type": "number"},
            "accuracy": optional("number"), "speed": optional("number"),
            "place_name": optional("string"), "battery": optional("number"),
        }),
        "place.entered" | "place.left" => json!({"name": {"type": "string"}}),
        "sos.triggered" | "sos.acknowledged" | "sos.resolved" => json!({
            "lat": optional("number"), "lng": optional("number"), "message": optional("string"),
        }),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use schemas::Event;

    use super::*;

    /// The samples of every type contain what the log really stores.
    #[test]
    fn what_is_shown_of_every_sample_is_described() {
        let events = PublicEvents::gather();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/samples");
        let mut seen = BTreeSet::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let file = std::fs::read(file.unwrap().path()).unwrap();
            let file: Value = serde_json::from_slice(&file).unwrap();
            for sample in file["samples"].as_array().unwrap() {
                let sample = serde_json::to_vec(sample).unwrap();
                let event = Event::decode(file["type"].as_str().unwrap(), &sample).unwrap();
                let name = event.name();
                if let Some(schema) = events.schemas.get(name.as_ref()) {
                    is_described(&name, &event.public_data().unwrap(), schema);
                    seen.insert(name.into_owned());
                }
            }
        }
        assert_eq!(seen.len(), events.types.len() - 1, "{seen:?}");
    }

    /// Two types may use one name for different things.
    #[test]
    fn the_definitions_of_a_type_are_its_own() {
        let events = PublicEvents::gather();
        let mut kept = 0;
        for entry in CATALOG
            .iter()
            .filter(|entry| events.types.contains(&entry.name))
        {
            let published = entry.json_schema();
            let schema = &events.schemas[entry.name];
            let mut expected = published.get("$defs").cloned().unwrap_or_default();
            redirect(entry.name, &mut expected);
            let own = schema.get("definitions").cloned().unwrap_or_default();
            assert_eq!(own, expected, "{}", entry.name);
            kept += own.as_object().map_or(0, Map::len);
            let own = format!("#/components/schemas/{}/definitions/", entry.name);
            for reference in schema.to_string().split("\"$ref\":\"").skip(1) {
                assert!(reference.starts_with(&own), "{}: {reference}", entry.name);
            }
        }
        assert!(kept > 0, "no type has definitions");
        assert_eq!(events.schemas.len(), events.types.len());
    }

    fn is_described(name: &str, shown: &Value, schema: &Value) {
        for field in shown.as_object().unwrap().keys() {
            let properties = &schema["properties"];
            assert!(properties.get(field).is_some(), "{name}: {field}");
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let field = required.as_str().unwrap();
            assert!(shown.get(field).is_some(), "{name}: {field} is not shown");
        }
    }
}
