//! The formats of an exported file.

use axum::extract::Query;
use axum::http::Uri;
use chrono::{DateTime, Datelike as _, Utc};
use service::HttpError;

use super::column::Kind;
use crate::paging::{time_of, wrong};

/// A format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, sent as the rows arrive.
    Csv,
    /// A file that can only be sent once it is complete.
    Document(Document),
}

/// A format whose files can only be sent once they are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// An Excel workbook.
    Excel,
    /// A table on pages.
    Pdf,
}

/// The parameter that asks for changes.
const SINCE: &str = "updatedSince";
/// The last year that a time in RFC 3339 can have. In UTC, an offset may lead beyond it.
const LAST_YEAR: i32 = 9_999;

/// The requested file.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The records and their columns.
    pub kind: &'static Kind,
    /// The format of the file.
    pub format: Format,
    /// The time since which changes are requested; `None` for all records.
    pub since: Option<DateTime<Utc>>,
}

impl Wanted {
    /// Returns the file of a kind that a request asks for. No format, several, or one that the kind
    /// does not have, means CSV.
    ///
    /// # Errors
    /// If `updatedSince` is not a time, or is combined with a file that has no changes.
    pub fn from_uri(uri: &Uri, kind: &'static Kind) -> Result<Self, HttpError> {
        let parameters = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let parameters = parameters.map(|Query(all)| all).unwrap_or_default();
        let mut formats = parameters.iter().filter(|(name, _)| name == "format");
        let named = match (formats.next(), formats.next()) {
            (Some((_, format)), None) => format.as_str(),
            _ => "csv",
        };
        let (kind, format) = match named {
            "crm" => (kind.crm.unwrap_or(kind), Format::Csv),
            "excel" => (kind, Format::Document(Document::Excel)),
            "pdf" => (kind, Format::Document(Document::Pdf)),
            _ => (kind, Format::Csv),
        };
        let since = since(&parameters)?;
        let kind = match since {
            Some(_) => kind.changes.ok_or_else(|| {
                let reason =
                    "does not go with format=crm, whose rows have no id to tell who was deleted";
                wrong(SINCE, reason)
            })?,
            None => kind,
        };
        Ok(Self {
            kind,
            format,
            since,
        })
    }
}

fn since(parameters: &[(String, String)]) -> Result<Option<DateTime<Utc>>, HttpError> {
    let mut given = parameters.iter().filter(|(name, _)| name == SINCE);
    let text = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some((_, text)), None) => text,
        (Some(_), Some(_)) => return Err(wrong(SINCE, "is given more than once")),
    };
    let form = "must be an RFC 3339 time such as 2026-11-21T09:30:00Z";
    let time = time_of(text).ok_or_else(|| wrong(SINCE, form))?;
    if time.year() > LAST_YEAR {
        return Err(wrong(SINCE, "must be before the year 10000 in UTC"));
    }
    // Nothing changed earlier, and Postgres does not support year 0.
    Ok(Some(time.max(DateTime::UNIX_EPOCH)))
}

impl Format {
    /// The format's media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Document(Document::Excel) => {
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
            }
            Self::Document(Document::Pdf) => "application/pdf",
        }
    }

    /// Returns the file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Document(Document::Excel) => "xlsx",
            Self::Document(Document::Pdf) => "pdf",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::{COMPANIES, CONTACTS, DEALS};

    fn asked(query: &str, kind: &'static Kind) -> (&'static str, Format) {
        let wanted = Wanted::from_uri(&format!("/x{query}").parse().unwrap(), kind).unwrap();
        (wanted.kind.name, wanted.format)
    }

    #[test]
    fn the_labels_of_a_crm_are_for_companies_only() {
        for (query, kind, name) in [
            ("?format=crm", &COMPANIES, "companies-crm"),
            ("?a&format=c%72m", &COMPANIES, "companies-crm"),
            ("?format=CRM", &COMPANIES, "companies"),
            ("?format=crm&format=crm", &COMPANIES, "companies"),
            ("?format=crm", &CONTACTS, "contacts"),
            ("?format=crm", &DEALS, "deals"),
        ] {
            assert_eq!(asked(query, kind), (name, Format::Csv), "{query} of {name}");
        }
    }

    #[test]
    fn changes_are_those_since_a_moment() {
        let asked = |query: &str| Wanted::from_uri(&format!("/x?{query}").parse().unwrap(), &DEALS);
        let since = "2026-11-21T09:30:00Z".parse().ok();
        for query in [
            "updatedSince=2026-11-21T09:30:00Z",
            "format=pdf&updatedSince=2026-11-21T10:30:00+01:00",
            "updatedSince=2026-11-21T10%3A30%3A00%2B01%3A00",
        ] {
            let wanted = asked(query).unwrap();
            assert_eq!(
                (wanted.kind.title, wanted.since),
                ("Changed deals", since),
                "{query}"
            );
        }
        for query in [
            "updatedSince=",
            "updatedSince=yesterday",
            "updatedSince=2026-11-21",
            "updatedSince=2026-11-21T09:30:00Z&updatedSince=2026-11-21T09:30:00Z",
        ] {
            assert!(asked(query).is_err(), "{query}");
        }
        let last = asked("updatedSince=9999-12-31T23:59:59Z").unwrap().since;
        assert_eq!(last, "9999-12-31T23:59:59Z".parse().ok());
        let beyond = asked("updatedSince=9999-12-31T23:59:59-01:00").unwrap_err();
        assert_eq!(
            (beyond.status.as_u16(), beyond.message.as_ref()),
            (400, "updatedSince: must be before the year 10000 in UTC")
        );
        let query = "/x?format=crm&updatedSince=2026-11-21T09:30:00Z";
        assert!(Wanted::from_uri(&query.parse().unwrap(), &COMPANIES).is_err());
    }

    #[test]
    fn what_names_no_format_means_csv() {
        let asked = |query: &str| asked(query, &CONTACTS).1;
        for query in [
            "",
            "?",
            "?format",
            "?format=",
            "?format=csv",
            "?format=crm",
            "?format=PDF",
            "?format=excel%20",
            "?format=%ff",
            "?format=pdf&format=excel",
            "?format=pdf&format=pdf",
            "?Format=pdf",
            "?format[]=pdf",
            "?&&=&%",
        ] {
            assert_eq!(asked(query), Format::Csv, "{query}");
        }
        let [excel, pdf] = [Document::Excel, Document::Pdf].map(Format::Document);
        assert_eq!(asked("?format=excel"), excel);
        assert_eq!(asked("?a=b&format=pdf"), pdf);
        assert_eq!(asked("?format=%70df"), pdf);
    }
}
