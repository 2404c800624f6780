//! Reads a JSON object field by field and collects all its errors.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::text::{self, json_type};
use crate::{FieldError, Invalid};

/// Collects the errors of one input.
#[derive(Debug, Default)]
pub(crate) struct Errors(RefCell<Vec<FieldError>>);

impl Errors {
    pub(crate) fn add(&self, place: impl Into<String>, reason: impl Into<String>) {
        self.0.borrow_mut().push(FieldError::new(place, reason));
    }

    pub(crate) fn take_in(&self, error: FieldError) {
        self.0.borrow_mut().push(error);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns every error found.
    pub(crate) fn into_all(self) -> Vec<FieldError> {
        self.0.into_inner()
    }

    /// Returns the value read, if there were no errors; a missing value has recorded one.
    pub(crate) fn settle<T>(self, read: Option<T>) -> Result<T, Invalid> {
        Invalid::unless_empty(self.0.into_inner())?;
        read.ok_or_else(|| FieldError::new("body", "is malformed").into())
    }
}

/// An object that is being read: each known field is taken out, what remains is unknown.
#[derive(Debug)]
pub(crate) struct Object<'e> {
    place: String,
    fields: Map<String, Value>,
    errors: &'e Errors,
}

impl<'e> Object<'e> {
    /// Starts to read `value`, which is at `place` (empty for the outermost object).
    pub(crate) fn open(place: impl Into<String>, value: Value, errors: &'e Errors) -> Option<Self> {
        let place = place.into();
        match value {
            Value::Object(fields) => Some(Self {
                place,
                fields,
                errors,
            }),
            other => {
                let place = if place.is_empty() {
                    "body".to_owned()
                } else {
                    place
                };
                let reason = format!("must be an object, not {}", json_type(&other));
                errors.add(place, reason);
                None
            }
        }
    }

    /// The full name of a field of this object.
    pub(crate) fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.place)
        }
    }

    pub(crate) fn errors(&self) -> &'e Errors {
        self.errors
    }

    pub(crate) fn error(&self, name: &str, reason: impl Into<String>) {
        self.errors.add(self.place_of(name), reason);
    }

    /// Whether the field was given at all, `null` included.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Takes a field out; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.fields
            .swap_remove(name)
            .filter(|value| !value.is_null())
    }

    /// Whether the field is absent or `null`; a `null` is removed.
    pub(crate) fn take_absent(&mut self, name: &str) -> bool {
        let absent = self.fields.get(name).is_none_or(Value::is_null);
        if absent {
            self.fields.swap_remove(name);
        }
        absent
    }

    /// Takes a required field.
    pub(crate) fn require(&mut self, name: &str) -> Option<Value> {
        let value = self.take(name);
        if value.is_none() {
            self.error(name, "is required");
        }
        value
    }

    /// Takes a string.
    pub(crate) fn string(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        self.as_string(name, value)
    }

    /// Takes a required string.
    pub(crate) fn required_string(&mut self, name: &str) -> Option<String> {
        let value = self.require(name)?;
        self.as_string(name, value)
    }

    /// Takes a required display name.
    pub(crate) fn required_name(&mut self, name: &str, max: usize) -> Option<String> {
        let given = self.required_string(name)?;
        text::name(&self.place_of(name), &given, max)
            .map_err(|error| self.errors.take_in(error))
            .ok()
    }

    /// Takes one of a few words.
    pub(crate) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let given = self.string(name)?;
        let found = words.iter().find(|(word, _)| *word == given);
        if found.is_none() {
            self.error(name, format!("must be {}", one_of(words)));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Takes a required one of a few words.
    pub(crate) fn required_word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        if self.take_absent(name) {
            self.error(name, format!("is required: {}", one_of(words)));
            return None;
        }
        self.word(name, words)
    }

    /// Takes a whole number within bounds.
    pub(crate) fn integer(&mut self, name: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let number = value.as_u64().filter(|number| bounds.contains(number));
        if number.is_none() {
            self.error(name, between("a whole number", &bounds));
        }
        number
    }

    /// Takes a number within bounds.
    pub(crate) fn number(&mut self, name: &str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let value = self.take(name)?;
        let number = value.as_f64().filter(|number| bounds.contains(number));
        if number.is_none() {
            self.error(name, between("a number", &bounds));
        }
        number
    }

    /// Takes a required number within bounds.
    pub(crate) fn required_number(
        &mut self,
        name: &str,
        bounds: RangeInclusive<f64>,
    ) -> Option<f64> {
        if self.take_absent(name) {
            self.error(name, "is required");
            return None;
        }
        self.number(name, bounds)
    }

    /// Takes a number that is not negative.
    pub(crate) fn positive_or_zero(&mut self, name: &str) -> Option<f64> {
        let value = self.take(name)?;
        let number = value.as_f64().filter(|number| *number >= 0.0);
        if number.is_none() {
            self.error(name, "must be a number from 0");
        }
        number
    }

    /// Takes an RFC 3339 time.
    pub(crate) fn time(&mut self, name: &str) -> Option<DateTime<Utc>> {
        let value = self.take(name)?;
        let time = value.as_str().and_then(text::rfc3339);
        if time.is_none() {
            self.error(name, text::NOT_A_TIME);
        }
        time
    }

    /// Takes an array of at most `max` items.
    pub(crate) fn array(&mut self, name: &str, max: usize) -> Option<Vec<Value>> {
        match self.take(name)? {
            Value::Array(items) if items.len() <= max => Some(items),
            Value::Array(_) => {
                self.error(name, format!("must have at most {max} items"));
                None
            }
            other => {
                self.error(name, format!("must be an array, not {}", json_type(&other)));
                None
            }
        }
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.take(name)? {
            Value::Object(fields) => Some(fields),
            other => {
                self.error(
                    name,
                    format!("must be an object, not {}", json_type(&other)),
                );
                None
            }
        }
    }

    /// Takes an array of strings of at most `max` items.
    pub(crate) fn strings(&mut self, name: &str, max: usize) -> Option<Vec<String>> {
        let items = self.array(name, max)?;
        let mut strings = Vec::with_capacity(items.len());
        for (nth, item) in items.into_iter().enumerate() {
            strings.push(self.as_string(&format!("{name}[{nth}]"), item)?);
        }
        Some(strings)
    }

    /// Ends the reading: reports every field not taken as unknown.
    pub(crate) fn finish(self) {
        for name in self.fields.keys() {
            self.error(&text::shown(name), "unknown field");
        }
    }

    fn as_string(&self, name: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            other => {
                self.error(name, format!("must be a string, not {}", json_type(&other)));
                None
            }
        }
    }
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    format!("one of {}", words.join(", "))
}

fn between<T: Display>(what: &str, bounds: &RangeInclusive<T>) -> String {
    format!("must be {what} from {} to {}", bounds.start(), bounds.end())
}
