//! Exports.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::operation::{Operation, get};
use super::shape::{refer, time};

pub(super) fn part() -> Part {
    Part {
        tag: "Exports",
        description: "All companies, deals or contacts of the organization in one file.",
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
            "An unknown format means `csv`. If an export fails midway, the connection is closed \
             without a proper end, so that an incomplete file cannot be mistaken for a complete \
             one. The same happens if the client reads nothing for a minute, reads less than 8 \
             KiB/s in the long run, or the key is revoked or expires. In CSV, a cell that a \
             spreadsheet would evaluate begins with an apostrophe; inside, it is as it was \
             written. `excel` is the format for spreadsheets. CSV is compressed for clients that \
             send `Accept-Encoding: gzip` or `zstd`. Ask again with the `ETag` in \
             `If-None-Match`, and the answer is 304 while nothing has changed. 400 means a \
             malformed position or `updatedSince`.",
        )
        .key(scope)
        .query_value("format", "File format.", format)
        .query_value(
            "updatedSince",
            "Only what was written or deleted from this time on, the longest ago first, with a \
             last column `deletedAt`; of a deleted record there is nothing else but its `id`. Not \
             with `format=crm`.",
            time(),
        )
        .parameter(refer("parameters", "MinPosition"))
        .parameter(refer("parameters", "IfNotKnown"))
        .parameter(refer("parameters", "IfModifiedSince"))
        .answers_with(
            200,
            "The file.",
            json!({
                "text/csv": csv,
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": file,
                "application/pdf": file,
            }),
        )
        .answers_nothing(304, "Nothing has changed.")
        .answer_header("Content-Disposition")
        .answer_header("ETag")
        .answer_header("Last-Modified")
        .refuses(&[400, 500])
}
