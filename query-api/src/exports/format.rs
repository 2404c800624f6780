//! The formats of an exported file.

use axum::extract::Query;
use axum::http::Uri;

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
    /// The format that a request asks for. Whatever names none, or several, means CSV.
    pub fn asked_for(uri: &Uri) -> Self {
        let Ok(Query(parameters)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
            return Self::Csv;
        };
        let mut formats = parameters.iter().filter(|(name, _)| name == "format");
        match (
            formats.next().map(|(_, value)| value.as_str()),
            formats.next(),
        ) {
            (Some("excel"), None) => Self::Document(Document::Excel),
            (Some("pdf"), None) => Self::Document(Document::Pdf),
            _ => Self::Csv,
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

    #[test]
    fn what_names_no_format_means_csv() {
        let asked = |query: &str| Format::asked_for(&format!("/x{query}").parse().unwrap());
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
