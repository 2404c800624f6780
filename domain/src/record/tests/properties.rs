//! All kinds, for any input.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::kinds::cases;
use super::{at, decided, read};
use crate::record::*;

/// Text that a cell and a JSON string both keep as it is.
fn words() -> impl Strategy<Value = String> {
    "[a-zäß🚲 ,\"'=+-]{0,12}x"
}

/// A valid value of a field, by its external name.
fn value_of(kind: Kind, name: &'static str) -> BoxedStrategy<Value> {
    let whole = -(1_i64 << 53)..=(1 << 53);
    match (kind, name) {
        (_, "employees" | "annualRevenue" | "amount" | "score") => {
            whole.prop_map(Value::from).boxed()
        }
        (_, "probability") => (0.0..=100.0_f64).prop_map(Value::from).boxed(),
        (_, "isActive") => any::<bool>().prop_map(Value::from).boxed(),
        (_, "expectedCloseDate") => (1..10_000_u32, 1..=12_u32, 1..=28_u32)
            .prop_map(|(year, month, day)| json!(format!("{year:04}-{month:02}-{day:02}")))
            .boxed(),
        (Kind::Orders, "status") => {
            let words = ["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];
            prop::sample::select(words.to_vec())
                .prop_map(Value::from)
                .boxed()
        }
        _ => words().prop_map(Value::from).boxed(),
    }
}

/// A record of some kind: each field with its value, sometimes absent if it may be.
fn record() -> impl Strategy<Value = (Kind, Vec<(&'static str, Value)>)> {
    prop::sample::select(Kind::ALL).prop_flat_map(|kind| {
        let fields = kind.field_names().iter().copied().map(|name| {
            let needed = [
                "name",
                "title",
                "orderNumber",
                "status",
                "amount",
                "firstName",
            ];
            let absent = u32::from(!needed.contains(&name));
            prop_oneof![3 => value_of(kind, name), absent => Just(Value::Null)]
                .prop_map(move |value| (name, value))
        });
        (Just(kind), fields.collect::<Vec<_>>())
    })
}

/// The object with these fields, those of nested objects put inside them.
fn object(fields: &[(&'static str, Value)]) -> Value {
    let mut object = Map::new();
    for (name, value) in fields {
        match name.split_once('.') {
            None => {
                object.insert((*name).to_owned(), value.clone());
            }
            Some((group, name)) => {
                object.entry(group).or_insert(json!({}))[name] = value.clone();
            }
        }
    }
    Value::Object(object)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

proptest! {
    /// A file and JSON agree, and the log's data reads back to the same record.
    #[test]
    fn json_rows_and_the_log_agree((kind, fields) in record()) {
        let from_json = read(kind, &object(&fields)).unwrap();
        let columns = Columns::new(kind, fields.iter().map(|(name, _)| *name)).unwrap();
        let cells: Vec<_> = fields.iter().map(|(_, value)| cell(value)).collect();
        let from_row = columns.draft(cells.iter().map(String::as_str)).unwrap();
        prop_assert_eq!(&from_row, &from_json);

        let event = create("x".into(), from_json, None, at(0)).unwrap();
        let recorded = schemas::Event::decode(&event.recorded_type(), &event.encode().unwrap());
        let recorded = recorded.unwrap();
        prop_assert_eq!(&recorded, &event);
        let back = read(kind, &decided(&recorded)).unwrap();
        prop_assert_eq!(put("x".into(), back, Some(&recorded), at(1)), (Change::Unchanged, None));
    }

    /// Whatever a field contains, the record is accepted or the field is named.
    #[test]
    fn wrong_input_names_its_field(
        nth in 0..6_usize,
        field in any::<prop::sample::Index>(),
        value in prop_oneof![
            Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from), ".{0,20}".prop_map(Value::from),
            Just(json!([])), Just(json!({})), Just(json!({"name": 7})),
        ],
    ) {
        let case = cases().swap_remove(nth);
        let mut object = case.least;
        let names: Vec<_> = case.kind.field_names().iter().filter(|n| !n.contains('.')).collect();
        let name = **field.get(&names);
        object[name] = value.clone();
        if let Err(error) = read(case.kind, &object) {
            // A contact without a name reports its e-mail.
            let named = error.field == name || case.kind == Kind::Contacts && error.field == "email";
            prop_assert!(named, "{} gave {}", object, error);
        }
        let columns = Columns::new(case.kind, [name]).unwrap();
        if let Err(error) = columns.draft([cell(&value).as_str()]) {
            prop_assert!(!error.field.is_empty());
        }
    }
}
