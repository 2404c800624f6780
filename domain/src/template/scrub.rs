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

    /// The same of a text that was cut off: at its end, what may be the beginning of a secret is
    /// left out.
    pub fn beginning(&self, text: &str) -> String {
        self.text(&text[..self.whole(text)])
    }

    /// Up to where a text that was cut off holds no part of a secret but whole ones.
    fn whole(&self, text: &str) -> usize {
        let begun = self.forms.iter().filter_map(|form| begun(text, form));
        let mut end = begun.min().unwrap_or(text.len());
        // The cut may divide a whole one that ends there, which would not be recognised any more.
        let earlier = |end| {
            let divided = self.forms.iter();
            divided.filter_map(|form| divided_by(end, text, form)).min()
        };
        while let Some(at) = earlier(end) {
            end = at;
        }
        end
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

/// Where the end of a text could be the beginning of a form; the earliest such place.
fn begun(text: &str, form: &str) -> Option<usize> {
    let mut lengths = form.char_indices().rev().map(|(length, _)| length);
    let length = lengths.find(|length| *length > 0 && text.ends_with(&form[..*length]));
    length.map(|length| text.len() - length)
}

/// Where a form begins in a text that a cut at `end` would divide.
fn divided_by(end: usize, text: &str, form: &str) -> Option<usize> {
    let mut places = (end + 1).saturating_sub(form.len())..end;
    places.find(|at| text.as_bytes()[*at..].starts_with(form.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_was_cut_off_ends_before_what_may_be_a_secret() {
        let scrub = Scrub::new(["s3cr3t \"x\"", "ABA"]);
        for (text, expected) in [
            ("token s3cr3t \"", "token "),
            ("token s3cr3t \\", "token "),
            ("token s3cr3t%20%22x", "token "),
            ("token s3cr3t \"x\"", "token ***"),
            ("token s3cr3x", "token s3cr3x"),
            // The last letter of one may be the first of the next.
            ("ABA", ""),
            ("ABA.", "***."),
            ("", ""),
        ] {
            assert_eq!(scrub.beginning(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_secret_is_left_wherever_a_text_is_cut_off(
            parts in prop::collection::vec(prop::sample::select(vec!["x", "yé", "ABA", "CDCDE"]), 0..9),
            at: prop::sample::Index,
        ) {
            let text = parts.concat();
            let cut: String = text.chars().take(at.index(text.len() + 1)).collect();
            let kept = Scrub::new(["ABA", "CDCDE"]).beginning(&cut);
            prop_assert!(!kept.contains(|one: char| one.is_ascii_uppercase()), "{} {}", cut, kept);
            let others = |text: &str| text.chars().filter(|one| one.is_lowercase()).count();
            prop_assert_eq!(others(&kept), others(&cut), "{} {}", cut, kept);
        }
    }
}
