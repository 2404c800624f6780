//! Helpers to write schemas.

use serde_json::{Map, Value, json};

/// Text without control characters and not only of white space.
const NAME: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
/// Text without NUL.
const TEXT: &str = r"^[^\u0000]*$";
/// The range of integers that all JSON readers represent exactly.
const WHOLE: i64 = 1 << 53;

/// A reference to a component.
pub(super) fn refer(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// A reference to a schema.
pub(super) fn schema(name: &str) -> Value {
    refer("schemas", name)
}

pub(super) fn string() -> Value {
    json!({"type": "string"})
}

/// A name for people.
pub(super) fn name(max: u32) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "pattern": NAME})
}

/// Free text.
pub(super) fn text(max: u32) -> Value {
    json!({"type": "string", "maxLength": max, "pattern": TEXT})
}

/// A search text.
pub(super) fn sought() -> Value {
    json!({
        "type": "string", "maxLength": 200,
        "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$",
    })
}

/// An id of the caller's choice.
pub(super) fn id() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 128,
        "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$",
    })
}

/// A time in the future.
pub(super) fn later() -> Value {
    json!({"type": "string", "format": "date-time", "examples": ["2031-12-31T23:59:59Z"]})
}

pub(super) fn day() -> Value {
    json!({"type": "string", "format": "date", "examples": ["2026-01-31"]})
}

pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time", "examples": ["2026-11-21T09:30:00Z"]})
}

pub(super) fn whole() -> Value {
    json!({"type": "integer", "minimum": -WHOLE, "maximum": WHOLE})
}

pub(super) fn integer(least: i64, most: i64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

pub(super) fn number(least: f64, most: f64) -> Value {
    json!({"type": "number", "minimum": least, "maximum": most})
}

pub(super) fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// References to headers, including those of a limit if the response is counted.
pub(super) fn headers(names: &[&str], counted: bool) -> Map<String, Value> {
    let limit = ["RateLimit", "RateLimit-Policy"];
    let limit = limit.iter().filter(|_| counted);
    names
        .iter()
        .chain(limit)
        .map(|name| ((*name).to_owned(), refer("headers", name)))
        .collect()
}

/// The given schema, or null.
pub(super) fn nullable(mut schema: Value) -> Value {
    if schema.get("$ref").is_some() {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
    }
    schema
}

/// The given schema with a description.
pub(super) fn meaning(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The given schema with an example.
pub(super) fn like(mut schema: Value, example: impl Into<Value>) -> Value {
    schema["examples"] = json!([example.into()]);
    schema
}

pub(super) fn array(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// Fields by name, in order.
pub(super) type Fields = Vec<(&'static str, Value)>;

fn properties(fields: Fields) -> Map<String, Value> {
    let fields = fields.into_iter();
    fields
        .map(|(name, shape)| (name.to_owned(), shape))
        .collect()
}

/// A client's request with only these fields.
pub(super) fn request(fields: Fields, required: &[&str]) -> Value {
    let mut shape = tolerant_request(fields, required);
    shape["additionalProperties"] = false.into();
    shape
}

/// A client's request. Unknown fields are ignored.
pub(super) fn tolerant_request(fields: Fields, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties(fields), "required": required})
}

/// A server's response with all of these fields.
pub(super) fn answer(fields: Fields) -> Value {
    let required: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "required": required, "properties": properties(fields)})
}

/// The given response with fields that are only present on request.
pub(super) fn with_optional(mut answer: Value, fields: Fields) -> Value {
    if let Some(all) = answer["properties"].as_object_mut() {
        all.extend(properties(fields));
    }
    answer
}

/// A page of a list.
pub(super) fn list(item: &str) -> Value {
    answer(vec![
        ("data", array(&schema(item))),
        ("total", meaning(integer(0, WHOLE), "All that match.")),
        ("page", json!({"type": "integer", "minimum": 1})),
        ("limit", integer(1, 100)),
    ])
}
