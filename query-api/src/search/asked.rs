//! What a list is asked for beyond its page: `q` and `sort`.

use service::HttpError;

use super::kind::Kind;
use crate::paging::{Parameters, Sorted};

/// The longest text that is looked for: more than any name has.
const MAX_TEXT: usize = 200;

/// What is looked for, in which order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Search {
    /// A part of a name, an e-mail address or a number.
    pub(crate) text: Option<String>,
    /// What the list is ordered by.
    pub(crate) by: Sorted,
    /// Whether the greatest come first.
    pub(crate) descending: bool,
}

impl Search {
    /// What a request looks for among records of a kind.
    pub(crate) fn asked_for(parameters: &Parameters, kind: &Kind) -> Result<Self, HttpError> {
        let sort = parameters.one("sort")?.unwrap_or("-createdAt");
        let (name, descending) = match sort.strip_prefix('-') {
            Some(name) => (name, true),
            None => (sort, false),
        };
        let by = match name {
            "createdAt" => Sorted::Created,
            "name" => Sorted::Name,
            "amount" if kind.amount.is_some() => Sorted::Amount,
            _ => return Err(no_such_sort(sort, kind)),
        };
        Ok(Self {
            text: asked_text(parameters)?,
            by,
            descending,
        })
    }

    /// Whether this is the list as it always is: all of it, newest first.
    pub(crate) fn is_plain(&self) -> bool {
        self.text.is_none() && self.by == Sorted::Created && self.descending
    }

    /// The text as `LIKE` takes it: itself, anywhere.
    pub(super) fn pattern(&self) -> Option<String> {
        self.text.as_deref().map(anywhere)
    }
}

/// A text as `LIKE` takes it: itself, anywhere.
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

/// The text that is looked for; none where it is blank, as a form that was left empty sends it.
pub(crate) fn asked_text(parameters: &Parameters) -> Result<Option<String>, HttpError> {
    let text = parameters.one("q")?.unwrap_or_default();
    if text.chars().count() > MAX_TEXT {
        let message = format!("q: must have at most {MAX_TEXT} characters");
        return Err(HttpError::bad_request(message));
    }
    if text.chars().any(char::is_control) {
        return Err(HttpError::bad_request(
            "q: must not contain control characters",
        ));
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn no_such_sort(sort: &str, kind: &Kind) -> HttpError {
    let known = match kind.amount {
        Some(_) => "createdAt, name or amount",
        None => "createdAt or name",
    };
    HttpError::bad_request(format!(
        "sort: must be {known}, or one of these after a - to descend, not {sort:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::kind::{LEADS, ORDERS};
    use super::*;

    fn asked(query: &str, kind: &Kind) -> Result<Search, String> {
        let uri = format!("/list{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| Search::asked_for(&parameters, kind))
            .map_err(|error| error.message.into_owned())
    }

    #[test]
    fn a_list_is_plain_unless_something_else_is_asked_for() {
        for query in ["", "?q=", "?q=%20", "?sort=-createdAt", "?page=2"] {
            assert!(asked(query, &LEADS).unwrap().is_plain(), "{query}");
        }
        for query in ["?q=a", "?sort=createdAt", "?sort=name", "?sort=-amount"] {
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
        assert_eq!(search.pattern().as_deref(), Some("%50\\%\\_a\\\\b%"));
    }
}
