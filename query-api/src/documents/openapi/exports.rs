//! Exports.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::operation::{Operation, get};
use super::shape::refer;

pub(super) fn part() -> Part {
    Part {
        tag: "Exports",
        description: "All companies, deals or contacts of the organization as one file.",
        operations: vec![
            export(
                "/api/export/companies",
                "exportCompanies",
                "Export companies",
                Scope::ExportCompanies,
                &["csv", "crm", "excel", "pdf"],
            ),
            export(
                "/api/export/deals",
                "exportDeals",
                "Export deals",
                Scope::ExportDeals,
                &["csv", "excel", "pdf"],
            ),
            export(
                "/api/export/contacts",
                "exportContacts",
                "Export contacts",
                Scope::ExportContacts,
                &["csv", "excel", "pdf"],
            ),
        ],
        schemas: Vec::new(),
    }
}

fn export(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    scope: Scope,
    formats: &[&str],
) -> Operation {
    let format: Value = json!({"type": "string", "default": "csv", "examples": formats});
    let file = json!({"schema": {"type": "string", "format": "binary"}});
    let csv = json!({"schema": {"type": "string"}});
    get(path, id, summary)
        .says(
            "A word that is no format means `csv`. An export that fails midway breaks its \
             connection off, so that no part is taken for the whole; so does one whose client \
             takes nothing for a minute, or less than 8 KiB/s in the long run, or whose key \
             ends. In CSV a cell that a \
             spreadsheet would run begins with an apostrophe. 400 is a position that is none.",
        )
        .key(scope)
        .query_value("format", "The file's form.", format)
        .parameter(refer("parameters", "MinPosition"))
        .answers_with(
            200,
            "The file.",
            json!({
                "text/csv": csv,
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": file,
                "application/pdf": file,
            }),
        )
        .answer_header("Content-Disposition")
        .refuses(&[400, 500])
}
