//! Removes secrets from what is recorded.

use serde_json::Value;

use super::address::component;

/// The replacement of a secret.
pub const MASK: &str = "***";

/// Removes the secrets of a run from texts and values that came back from outside.
///
/// Besides the value itself, its forms within JSON text and within an address are recognised.
#[derive(Default)]
pub struct Scrub {
    /// Longest first, so that replacing a secret within another does not leave the other's rest.
    forms: Vec<String>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} forms)", self.forms.len())
    }
}

impl Scrub {
    /// Creates a scrub for these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = Vec::new();
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            forms.push(secret.to_owned());
            forms.push(within_json(secret));
            forms.extend(within_addresses(secret));
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self { forms }
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, form| {
            if text.contains(form.as_str()) {
                text.replace(form.as_str(), MASK)
            } else {
                text
            }
        })
    }

    /// The value without secrets, in keys and numbers too.
    pub fn value(&self, value: Value) -> Value {
        if self.forms.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(key, value)| (self.text(&key), self.value(value)))
                .collect(),
            Value::Number(number) if self.forms.contains(&number.to_string()) => {
                Value::String(MASK.to_owned())
            }
            other => other,
        }
    }
}

fn within_json(secret: &str) -> String {
    let quoted = Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn within_addresses(secret: &str) -> [String; 3] {
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = form.replace('+', "%20");
    [form, percent, component(secret)]
}
