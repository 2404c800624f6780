//! Schemas as rows of a table: one row per field, nested fields below it.

use serde::Serialize;
use serde_json::{Map, Value};

/// Fields nested deeper than this are left to the document itself.
const DEEPEST: usize = 4;

/// A field.
#[derive(Serialize)]
pub(super) struct Row {
    depth: usize,
    name: String,
    kind: String,
    required: bool,
    description: String,
}

impl Row {
    /// One of several schemas. Its fields follow.
    fn way(depth: usize, name: &str) -> Self {
        Self {
            depth,
            name: String::new(),
            kind: name.to_owned(),
            required: false,
            description: String::new(),
        }
    }
}

/// The schemas of a document.
pub(super) struct Shapes<'d>(pub(super) &'d Value);

impl Shapes<'_> {
    /// Resolves a reference. Anything else is returned as it is.
    pub(super) fn resolve<'v>(&'v self, value: &'v Value) -> &'v Value {
        let pointer = value["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
        let found = pointer.and_then(|pointer| self.0.pointer(pointer));
        found.unwrap_or(value)
    }

    pub(super) fn rows(&self, shape: &Value) -> Vec<Row> {
        let mut rows = Vec::new();
        self.add(shape, 0, &mut rows);
        rows
    }

    fn add(&self, shape: &Value, depth: usize, rows: &mut Vec<Row>) {
        if depth > DEEPEST {
            return;
        }
        let shape = self.resolve(shape);
        let several = ways(shape).count() > 1;
        for way in ways(shape) {
            if let Some(name) = named(way).filter(|_| several) {
                rows.push(Row::way(depth, name));
            }
            self.add(way, depth, rows);
        }
        if let Some(items) = shape.get("items") {
            self.add(items, depth, rows);
        }
        let required = shape["required"].as_array();
        for (name, field) in shape["properties"].as_object().into_iter().flatten() {
            let known = self.resolve(field);
            let description = field["description"]
                .as_str()
                .or(known["description"].as_str());
            rows.push(Row {
                depth,
                name: name.clone(),
                kind: self.kind(field),
                required: required.is_some_and(|names| names.iter().any(|one| one == name)),
                description: description.unwrap_or_default().to_owned(),
            });
            self.add(field, depth + 1, rows);
        }
    }

    /// Describes a schema in a few words.
    pub(super) fn kind(&self, shape: &Value) -> String {
        let shape = self.resolve(shape);
        if let Some(value) = shape["const"].as_str() {
            return format!("\"{value}\"");
        }
        if let Some(words) = shape["enum"].as_array() {
            let words = words.iter().map(|word| word.as_str().unwrap_or("null"));
            return words.collect::<Vec<_>>().join(" | ");
        }
        if ways(shape).next().is_some() {
            let ways: Vec<_> = ways(shape).map(|way| self.kind(way)).collect();
            return ways.join(" or ");
        }
        let named = match &shape["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds.collect::<Vec<_>>().join(" | ")
            }
            _ => "any JSON".to_owned(),
        };
        let kind = match shape["format"].as_str() {
            Some(format) => format!("{named}, {format}"),
            None => named,
        };
        format!("{kind}{}", bounds(shape))
    }

    /// Returns a value of a schema: its own example, or one composed of its fields' examples.
    pub(super) fn example(&self, shape: &Value) -> Value {
        let shape = self.resolve(shape);
        if let Some(example) = shape["examples"].as_array().and_then(|all| all.first()) {
            return example.clone();
        }
        if let Some(word) = shape.get("const").or_else(|| shape["enum"].get(0)) {
            return word.clone();
        }
        if let Some(way) = ways(shape).next() {
            return self.example(way);
        }
        let kind = shape["type"].as_str().or_else(|| shape["type"][0].as_str());
        match kind {
            Some("object") => self.object(shape).into(),
            Some("array") => Value::Array(vec![self.example(&shape["items"])]),
            Some("integer" | "number") => shape["minimum"]
                .as_f64()
                .filter(|least| *least > 0.0)
                .map_or(Value::from(0), |_| shape["minimum"].clone()),
            Some("boolean") => true.into(),
            _ => "…".into(),
        }
    }

    /// Returns the required fields, and those with an example of their own.
    fn object(&self, shape: &Value) -> Map<String, Value> {
        let required = shape["required"].as_array();
        let fields = shape["properties"].as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| {
                required.is_some_and(|names| names.iter().any(|one| one == name.as_str()))
            })
            .map(|(name, field)| (name.clone(), self.example(field)))
            .collect()
    }
}

/// Returns the alternatives of a schema, without null.
fn ways(shape: &Value) -> impl Iterator<Item = &Value> {
    let ways = shape.get("oneOf").or_else(|| shape.get("anyOf"));
    let ways = ways.and_then(Value::as_array).into_iter().flatten();
    ways.filter(|way| {
        way["type"] != "null" && (way.get("type").is_some() || way.get("$ref").is_some())
    })
}

/// Returns the name of the schema that a reference leads to.
fn named(shape: &Value) -> Option<&str> {
    shape["$ref"].as_str()?.rsplit('/').next()
}

fn bounds(shape: &Value) -> String {
    let kinds = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ];
    let said = kinds.iter().filter_map(|(least, most, unit)| {
        let range = match (shape.get(least), shape.get(most)) {
            (None, None) => return None,
            (Some(least), None) => format!("from {least}"),
            (None, Some(most)) => format!("up to {most}"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
        };
        Some(format!(", {range}{unit}"))
    });
    said.collect()
}
