//! Compares the published JSON Schema of the format with what is accepted.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;

use super::*;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let published = include_str!("../../../../docs/reference/workflow.schema.json");
    serde_json::from_str(published).unwrap()
});
static COMPILED: LazyLock<(Schemas, SchemaIndex)> = LazyLock::new(|| {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let place = "workflow.schema.json";
    compiler.add_resource(place, SCHEMA.clone()).unwrap();
    let index = compiler.compile(place, &mut schemas).unwrap();
    (schemas, index)
});

/// The schema's error about a definition.
fn by_schema(definition: &Value) -> Result<(), String> {
    let (schemas, index) = &*COMPILED;
    let validated = schemas.validate(definition, *index);
    validated.map_err(|error| error.to_string())
}

/// What a schema cannot express, by the words of the error: how steps are connected, what
/// expressions and templates mean, and what only a calendar, a parser or a record's kind knows.
const BEYOND: &[&str] = &[
    "no step has this id",
    "cannot be reached",
    "circle",
    "is already the id of",
    "must equal the id in the path",
    "no step with this id comes before it",
    "is not an absolute URL",
    "must be *, a type such as",
    "must be an IANA time zone",
    "must have five fields",
    "an expression is missing",
    "unknown variable",
    "syntax error",
    "must not be less than initialSeconds",
    "requires timeoutSeconds",
    "method: is required",
    ".data.",
    "recordId: must",
];

/// One step of each type, with every field.
fn everything() -> Value {
    json!({
        "workflowId": "w1", "name": "Welcome a lead", "status": "ACTIVE", "timeoutSeconds": 86_400,
        "steps": [
            {"id": "start", "type": "TRIGGER",
             "on": {"event": "lead.created", "filter": "data.score >= 50"}, "next": ["hot"]},
            {"id": "hot", "type": "CONDITION", "if": "trigger.score >= 80", "then": ["call"],
             "else": ["later"], "join": "any"},
            {"id": "call", "type": "HTTP", "method": "POST",
             "url": "https://crm.example/leads/{{ trigger.id }}",
             "headers": {"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"},
             "body": {"email": "{{ trigger.email }}"}, "timeoutSeconds": 15,
             "retry": {"maxAttempts": 5, "initialSeconds": 1, "maxSeconds": 60},
             "acceptStatus": [200, 201], "next": ["save"]},
            {"id": "later", "type": "DELAY", "seconds": 3_600, "next": ["reply"]},
            {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "contact.updated",
             "match": "data.email == trigger.email", "timeoutSeconds": 86_400, "next": ["save"],
             "onTimeout": ["tell"]},
            {"id": "save", "type": "RECORD", "kind": "contacts", "recordId": "{{ trigger.id }}",
             "data": {"email": "{{ trigger.email }}"}, "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
             "data": {"status": "{{ steps.call.output.status }}"}, "join": "any"}
        ]
    })
}

/// The same, triggered by the clock.
fn scheduled() -> Value {
    let mut definition = everything();
    definition["steps"][0]["on"] = json!({"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"});
    definition
}

/// The places of everything within a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let within: Vec<_> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(nth, item)| (nth.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in within {
        let place = format!("{at}/{name}");
        places(value, &place, found);
        found.push(place);
    }
}

fn values() -> Vec<Value> {
    let long = |length| Value::from("x".repeat(length));
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(301),
        json!(1e12),
        json!(""),
        json!(" "),
        json!("tell"),
        json!("ä\u{7}"),
        long(65),
        long(129),
        long(201),
        long(2_049),
        json!([]),
        json!(["tell"]),
        json!(["tell", "tell"]),
        json!([1]),
        json!([null]),
        json!({}),
        json!({"a": 1}),
        json!({"a": "b"}),
    ]
}

/// A definition with one thing different.
#[derive(Clone, Debug)]
enum Change {
    Removed,
    Replaced(Value),
    /// An additional, unknown field.
    Joined,
}

fn changes() -> Vec<Change> {
    let replaced = values().into_iter().map(Change::Replaced);
    replaced.chain([Change::Removed, Change::Joined]).collect()
}

fn change(definition: &mut Value, place: &str, change: Change) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    let Some(parent) = definition.pointer_mut(parent) else {
        return;
    };
    match (change, parent) {
        (Change::Removed, Value::Object(fields)) => {
            fields.shift_remove(name);
        }
        (Change::Removed, Value::Array(items)) => {
            let nth: usize = name.parse().unwrap();
            if nth < items.len() {
                items.remove(nth);
            }
        }
        (Change::Joined, Value::Object(fields)) => {
            fields.insert("unheardOf".to_owned(), json!("x"));
        }
        (Change::Joined, Value::Array(items)) => items.push(json!("unheard-of")),
        (Change::Replaced(value), parent) => {
            let old = match parent {
                Value::Object(fields) => fields.get_mut(name),
                Value::Array(items) => items.get_mut(name.parse::<usize>().unwrap()),
                _ => None,
            };
            if let Some(old) = old {
                *old = value;
            }
        }
        _ => {}
    }
}

/// How the two disagree.
fn disagreement(definition: &Value) -> Option<String> {
    match (read(definition.clone()), by_schema(definition)) {
        (Ok(_), Err(wrong)) => Some(format!("taken, and against the schema: {wrong}")),
        (Err(invalid), Ok(())) => {
            let errors: Vec<_> = invalid.errors().iter().map(ToString::to_string).collect();
            let is_beyond = |error: &String| BEYOND.iter().any(|words| error.contains(words));
            (!errors.iter().any(is_beyond))
                .then(|| format!("by the schema, and refused: {errors:?}"))
        }
        _ => None,
    }
}

#[test]
fn one_change_anywhere_is_refused_by_both_or_by_neither() {
    let mut wrong = Vec::new();
    let mut refused_by_both = 0;
    for whole in [everything(), scheduled()] {
        assert_eq!(disagreement(&whole), None);
        read(whole.clone()).unwrap();
        let mut all = Vec::new();
        places(&whole, "", &mut all);
        for place in all {
            for one in changes() {
                let mut definition = whole.clone();
                change(&mut definition, &place, one.clone());
                refused_by_both += usize::from(by_schema(&definition).is_err());
                let said = disagreement(&definition);
                wrong.extend(said.map(|said| format!("{place} {one:?}: {said}")));
            }
        }
    }
    assert!(refused_by_both > 1_000, "{refused_by_both}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #[test]
    fn what_is_taken_after_any_changes_is_by_the_schema(
        drawn in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 2..5),
    ) {
        let mut definition = everything();
        for (place, one) in drawn {
            let mut all = Vec::new();
            places(&definition, "", &mut all);
            if all.is_empty() {
                break;
            }
            let place: &String = place.get(&all);
            change(&mut definition, place, one.get(&changes()).clone());
        }
        prop_assert_eq!(disagreement(&definition), None, "{}", definition);
    }
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
}

/// The definitions of workflows in a document.
fn definitions(text: &str) -> Vec<Value> {
    let blocks = text.split("```json\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let blocks = blocks.filter_map(|block| serde_json::from_str::<Value>(block).ok());
    let is_given = |value: &Value| value["steps"].is_array() && value.get("runId").is_none();
    blocks
        .filter(|value| is_given(value) && value.get("version").is_none())
        .collect()
}

#[test]
fn what_the_documents_show_is_taken_and_by_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = vec![root.join("README.md")];
    documents(&root.join("docs"), &mut paths);
    let mut shown: Vec<Value> = SCHEMA["examples"].as_array().unwrap().clone();
    for path in paths {
        shown.extend(definitions(&std::fs::read_to_string(path).unwrap()));
    }
    assert!(shown.len() >= 3, "{}", shown.len());
    for definition in shown {
        assert_eq!(by_schema(&definition), Ok(()), "{definition}");
        parse(&id_of(&definition), definition).unwrap();
    }
}

fn id_of(definition: &Value) -> WorkflowId {
    WorkflowId::from(definition["workflowId"].as_str().unwrap_or("w1"))
}
