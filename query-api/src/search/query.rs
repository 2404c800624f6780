//! The parameters of a list beyond its page: `q`, `sort` and filters.

use service::HttpError;

use super::filter::Filter;
use super::kind::Kind;
use crate::paging::{Parameters, Sort, Sorted, wrong};

/// Maximum length of a search text: more than any name has.
const MAX_TEXT: usize = 200;

/// A search and its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Search {
    /// A part of a name, an e-mail address or a number.
    pub(crate) text: Option<String>,
    /// The filter of the records by their time and fields.
    pub(crate) filter: Filter,
    /// The order of the list.
    pub(crate) by: Sorted,
    /// Whether the greatest come first.
    pub(crate) descending: bool,
}

impl Search {
    /// Returns the search that a request asks for among records of a kind.
    pub(crate) fn from_parameters(parameters: &Parameters, kind: &Kind) -> Result<Self, HttpError> {
        let Sort { by, descending } = Sort::from_parameters(parameters, &kind.sorts())?;
        Ok(Self {
            text: search_text(parameters)?,
            filter: Filter::from_parameters(parameters, kind)?,
            by,
            descending,
        })
    }

    /// Whether this is the default list: all of it, newest first.
    pub(crate) fn is_plain(&self) -> bool {
        let is_all = self.text.is_none() && self.filter.is_empty();
        is_all && self.by == Sorted::Created && self.descending
    }
}

/// Returns the `LIKE` pattern that finds a text anywhere.
pub(crate) fn anywhere(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// Returns the search text; `None` if it is blank, as sent by an empty form.
pub(crate) fn search_text(parameters: &Parameters) -> Result<Option<String>, HttpError> {
    text_parameter(parameters, "q")
}

/// Returns the words that a parameter gives; `None` if it is blank.
pub(crate) fn text_parameter(
    parameters: &Parameters,
    name: &str,
) -> Result<Option<String>, HttpError> {
    let text = parameters.one(name)?.unwrap_or_default();
    if text.chars().count() > MAX_TEXT {
        return Err(wrong(
            name,
            &format!("must have at most {MAX_TEXT} characters"),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(wrong(name, "must not contain control characters"));
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::kind::{LEADS, ORDERS};
    use super::*;

    fn asked(query: &str, kind: &Kind) -> Result<Search, String> {
        let uri = format!("/list{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| Search::from_parameters(&parameters, kind))
            .map_err(|error| error.message.into_owned())
    }

    #[test]
    fn a_list_is_plain_unless_something_else_is_asked_for() {
        for query in ["", "?q=", "?q=%20", "?sort=-createdAt", "?page=2"] {
            assert!(asked(query, &LEADS).unwrap().is_plain(), "{query}");
        }
        for query in [
            "?q=a",
            "?sort=createdAt",
            "?sort=name",
            "?sort=-amount",
            "?createdBefore=2026-01-01",
        ] {
            assert!(!asked(query, &ORDERS).unwrap().is_plain(), "{query}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let long = format!("?q={}", "x".repeat(201));
        for (query, word) in [
            ("?sort=", "sort"),
            ("?sort=score", "sort"),
            ("?sort=--name", "sort"),
            ("?sort=amount", "sort"),
            ("?sort=name&sort=name", "sort"),
            ("?q=a%00", "q"),
            ("?q=a%0Ab", "q"),
            ("?q=a&q=b", "q"),
            (long.as_str(), "q"),
        ] {
            let message = asked(query, &LEADS).unwrap_err();
            assert!(message.starts_with(word), "{query}: {message}");
        }
        assert!(asked("?sort=amount", &ORDERS).is_ok());
    }

    #[test]
    fn what_a_pattern_would_mean_is_looked_for_as_it_is() {
        let search = asked("?q=50%25_a%5Cb", &LEADS).unwrap();
        let pattern = search.text.as_deref().map(anywhere);
        assert_eq!(pattern.as_deref(), Some("%50\\%\\_a\\\\b%"));
    }
}
