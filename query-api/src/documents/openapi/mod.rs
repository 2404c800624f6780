//! The description of every HTTP operation, in OpenAPI 3.1: one file per tag.
#![expect(
    clippy::needless_pass_by_value,
    reason = "shapes are put together where they are handed over"
)]

mod accounts;
mod business;
mod circles;
mod events;
mod exports;
mod keys;
mod operation;
mod parts;
mod positions;
mod records;
mod refusals;
mod shape;
mod sos;
mod upkeep;
mod webhooks;
mod workflow_shapes;
mod workflows;

use serde_json::{Map, Value, json};

use self::operation::Operation;

/// One part of the API.
struct Part {
    tag: &'static str,
    description: &'static str,
    operations: Vec<Operation>,
    schemas: Vec<(&'static str, Value)>,
}

fn parts() -> Vec<Part> {
    vec![
        workflows::part(),
        exports::part(),
        business::part(),
        records::part(),
        keys::part(),
        webhooks::part(),
        events::part(),
        accounts::part(),
        positions::part(),
        circles::part(),
        sos::part(),
        upkeep::part(),
    ]
}

/// The whole document.
pub(crate) fn document() -> Value {
    let (mut tags, mut paths) = (Vec::new(), Map::new());
    let mut schemas = parts::schemas();
    for part in parts() {
        tags.push(json!({"name": part.tag, "description": part.description}));
        for operation in part.operations {
            let path = paths
                .entry(operation.path.as_ref())
                .or_insert_with(|| json!({}));
            let method = operation.method;
            path[method] = operation.write(part.tag);
        }
        for (name, schema) in part.schemas {
            schemas.insert(name.to_owned(), schema);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Waypost",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "One backend for a field business over one event log.",
            "description": parts::INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parts::parameters(),
            "headers": parts::headers(),
            "responses": refusals::responses(),
            "securitySchemes": parts::security_schemes(),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Collects every `$ref` of a value.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    found.insert(to.clone());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_component_is_used() {
        let document = document();
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        for reference in &used {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for kind in ["schemas", "parameters", "headers"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                let reference = format!("#/components/{kind}/{name}");
                assert!(used.contains(&reference), "{reference} is used nowhere");
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_names_its_path_values() {
        let mut names = BTreeSet::new();
        for operation in parts().into_iter().flat_map(|part| part.operations) {
            let (id, path) = (operation.id.clone(), operation.path.clone());
            assert!(names.insert(id.clone()), "{id}");
            let written = operation.write("");
            let named = |parameter: &Value| {
                let name = parameter["name"]
                    .as_str()
                    .filter(|_| parameter["in"] == "path")?;
                Some(format!("{{{name}}}"))
            };
            let parameters = written["parameters"].as_array();
            let named: Vec<_> = parameters.into_iter().flatten().filter_map(named).collect();
            assert!(named.iter().all(|name| path.contains(name)), "{id}");
            assert_eq!(named.len(), path.matches('{').count(), "{id}");
        }
    }
}
