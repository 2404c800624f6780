//! `GET /dashboard/import/contacts` and similar pages: records from a file. The file is read in the
//! browser, and sent to the endpoint that programs use.

use axum::Extension;
use axum::response::Response;
use minijinja::context;

use super::kinds::Kind;
use super::list::described;
use crate::pages::amounts::DECIMALS;
use crate::pages::frame::shown;
use crate::pages::visit::{Instead, Visit};

pub(super) async fn show_import(
    Extension(kind): Extension<&'static Kind>,
    visit: Visit,
) -> Result<Response, Instead> {
    let page = visit
        .page("record_import.html", "Import", kind.list.table)
        .await?
        .with_script("csv.js")
        .with_script("import.js")
        .with_style("records.css");
    Ok(page.show(context! {
        kind => described(kind),
        fields => shown(kind.fields),
        decimals => DECIMALS,
    })?)
}
