//! The request for a list, and the addresses of alternative requests.

use chrono::NaiveDate;
use minijinja::Value;
use serde::Serialize;
use service::HttpError;

use super::kinds::{Kind, Look};
use crate::pages::address::encoded;
use crate::pages::frame::shown;
use crate::paging::{Grouping, Parameters};
use crate::search::{Search, text_parameter};

/// The request for a list.
pub(super) struct RecordsQuery<'a> {
    pub(super) kind: &'static Kind,
    pub(super) search: Search,
    /// The state to filter by; empty for all.
    pub(super) state: String,
    pub(super) sort: Option<&'a str>,
    /// The ends of the span of creation times, as given.
    span: [(&'static str, &'static str, &'a str); 2],
}

/// A heading and its link.
#[derive(Serialize)]
pub(super) struct Heading {
    label: &'static str,
    look: Look,
    href: Option<String>,
    /// The value of `aria-sort`.
    sorted: Option<&'static str>,
}

/// A field of the form for a filter.
#[derive(Serialize)]
pub(super) struct FilterField {
    name: &'static str,
    label: &'static str,
    /// The type of its input.
    input: &'static str,
    value: String,
    /// Values that may be chosen instead of typed.
    offered: Vec<String>,
}

/// The fields that lists are filtered by if their kind has them: the names of their parameters, and
/// their labels.
pub(super) const FIELDS: [(Grouping, &str, &str); 2] = [
    (Grouping::City, "city", "City"),
    (Grouping::Owner, "owner", "Owner"),
];

impl<'a> RecordsQuery<'a> {
    pub(super) fn of(parameters: &'a Parameters, kind: &'static Kind) -> Result<Self, HttpError> {
        let given = |name| -> Result<&'a str, HttpError> {
            Ok(parameters.one(name)?.unwrap_or_default().trim())
        };
        Ok(Self {
            kind,
            search: Search::from_parameters(parameters, kind.list)?,
            state: text_parameter(parameters, "status")?.unwrap_or_default(),
            sort: parameters.one("sort")?,
            span: [
                ("createdFrom", "Created from", given("createdFrom")?),
                ("createdBefore", "Created before", given("createdBefore")?),
            ],
        })
    }

    pub(super) fn text(&self) -> &str {
        self.search.text.as_deref().unwrap_or_default()
    }

    /// Whether the list is unfiltered.
    pub(super) fn is_all(&self) -> bool {
        self.text().is_empty() && self.state.is_empty() && self.search.filter.is_empty()
    }

    pub(super) fn address(&self, sort: Option<&str>) -> String {
        let mut address = format!("/dashboard/{}", self.kind.list.table);
        let sort = sort.unwrap_or_default();
        let asked = [("q", self.text()), ("status", &self.state), ("sort", sort)];
        let span = self.span.map(|(name, _, text)| (name, text));
        let fields = FIELDS.map(|(grouping, name, _)| {
            let value = self.search.filter.value(grouping);
            (name, value.unwrap_or_default())
        });
        let mut between = '?';
        for (name, value) in asked.into_iter().chain(span).chain(fields) {
            if !value.is_empty() {
                address.push(between);
                address.push_str(name);
                address.push('=');
                address.push_str(&encoded(value));
                between = '&';
            }
        }
        address
    }

    /// Returns the fields for the filters by time.
    pub(super) fn span_fields(&self) -> impl Iterator<Item = FilterField> {
        self.span
            .into_iter()
            .map(|(name, label, text)| FilterField {
                name,
                label,
                // A value that a date field cannot show is shown as given.
                input: if text.is_empty() || text.parse::<NaiveDate>().is_ok() {
                    "date"
                } else {
                    "text"
                },
                value: text.to_owned(),
                offered: Vec::new(),
            })
    }

    /// Returns the form field for a filter by a field of the kind.
    pub(super) fn field(
        &self,
        (grouping, name, label): (Grouping, &'static str, &'static str),
        offered: Vec<String>,
    ) -> FilterField {
        let value = self.search.filter.value(grouping);
        FilterField {
            name,
            label,
            input: "text",
            value: value.unwrap_or_default().to_owned(),
            offered,
        }
    }

    pub(super) fn headings(&self) -> Value {
        let columns = self.kind.columns.iter();
        let headings = columns.map(|column| self.heading(column.label, column.look, column.sort));
        let created = self.heading("Created", Look::Text, Some("createdAt"));
        shown(headings.chain([created]).collect::<Vec<_>>())
    }

    /// Returns a heading that sorts by its column, or in reverse if the list already is.
    fn heading(&self, label: &'static str, look: Look, sort: Option<&'static str>) -> Heading {
        let now = self.sort.unwrap_or("-createdAt");
        let (by, descends) = match now.strip_prefix('-') {
            Some(by) => (by, true),
            None => (now, false),
        };
        let is_sorted = sort == Some(by);
        // Texts are sorted from A, amounts and times from the greatest, and active records before
        // inactive ones.
        let descend = if is_sorted {
            !descends
        } else {
            matches!(sort, Some("createdAt" | "amount" | "isActive"))
        };
        let sign = if descend { "-" } else { "" };
        Heading {
            label,
            look,
            href: sort.map(|sort| self.address(Some(&format!("{sign}{sort}")))),
            sorted: is_sorted.then_some(if descends { "descending" } else { "ascending" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::KINDS;
    use super::*;

    #[test]
    fn every_column_sorts_by_something_that_the_list_knows() {
        for kind in KINDS {
            let sorts = kind.list.sorts();
            let by = kind.columns.iter().filter_map(|column| column.sort);
            let unknown = by.filter(|by| !sorts.iter().any(|(word, _)| word == by));
            let unknown: Vec<_> = unknown.collect();
            assert_eq!(unknown, [""; 0], "{}", kind.title);
        }
    }

    #[test]
    fn addresses_keep_what_is_asked_for() {
        let query = "city=S%C3%A3o+Paulo&owner=&createdFrom=2026-01-01&q=a%26b&status=x&page=3";
        let uri = format!("/dashboard/contacts?{query}").parse().unwrap();
        let parameters = Parameters::of(&uri).unwrap();
        let wanted = RecordsQuery::of(&parameters, KINDS[0]).unwrap();
        assert_eq!(
            wanted.address(Some("-name")),
            "/dashboard/contacts?q=a%26b&status=x&sort=%2Dname&createdFrom=2026%2D01%2D01\
             &city=S%C3%A3o%20Paulo"
        );
        assert!(!wanted.is_all());
    }
}
