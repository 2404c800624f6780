//! The formats of an exported file.

use axum::extract::Query;
use axum::http::Uri;

use super::column::Kind;

/// A format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, sent as the rows come.
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

impl Format {
    /// The file of a kind that a request asks for. Whatever names no format, several, or one that
    /// the kind does not have, means CSV.
    pub fn asked_for(uri: &Uri, kind: &'static Kind) -> (&'static Kind, Self) {
        let Ok(Query(parameters)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
            return (kind, Self::Csv);
        };
        let mut formats = parameters.iter().filter(|(name, _)| name == "format");
        match (
            formats.next().map(|(_, value)| value.as_str()),
            formats.next(),
        ) {
            (Some("crm"), None) => (kind.crm.unwrap_or(kind), Self::Csv),
            (Some("excel"), None) => (kind, Self::Document(Document::Excel)),
            (Some("pdf"), None) => (kind, Self::Document(Document::Pdf)),
            _ => (kind, Self::Csv),
        }
    }

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

    /// How the names of such files end.
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
        let (kind, format) = Format::asked_for(&format!("/x{query}").parse().unwrap(), kind);
        (kind.name, format)
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
