//! `GET /docs`, `/docs/tutorial`, `/docs/{folder}/{name}` and `/docs/search`.

use axum::extract::Path;
use axum::http::Uri;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use minijinja::{Value, context};
use service::HttpError;

use super::super::frame::{Page, piece, shown};
use super::super::visit::Instead;
use super::api::{operations, overview};
use super::library::{Document, LIBRARY, document_at};
use super::search::search;
use crate::paging::Parameters;

const SCHEMA: &str = include_str!("../../../../docs/reference/workflow.schema.json");

pub(super) async fn show_index() -> Result<Response, Instead> {
    let page = Page::open("docs_index.html", "Documentation").with_script("docs.js");
    Ok(page.show(
        context! { nav => nav("/docs", "")?, shelves => shown(&*LIBRARY), parts => overview() },
    )?)
}

pub(super) async fn show_tutorial() -> Result<Response, Instead> {
    Ok(show("/docs/tutorial")?)
}

pub(super) async fn get_tutorial() -> Result<Response, Instead> {
    text_of("/docs/tutorial")
}

pub(super) async fn show_document(
    Path((folder, name)): Path<(String, String)>,
) -> Result<Response, Instead> {
    let address = format!("/docs/{folder}/{name}");
    // Programs that read for a person prefer the source text.
    match address.strip_suffix(".md") {
        Some(address) => text_of(address),
        None => Ok(show(&address)?),
    }
}

pub(super) async fn get_schema() -> Response {
    raw("application/schema+json", SCHEMA)
}

pub(super) async fn show_found(uri: Uri) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let asked = parameters.one("q")?.unwrap_or_default();
    let found = search(asked, operations());
    let page = Page::open("docs_search.html", "Search").with_script("docs.js");
    Ok(page.show(context! {
        nav => nav("", asked)?,
        asked => asked,
        found => shown(&found),
    })?)
}

#[expect(
    clippy::result_large_err,
    reason = "an answer, as the handlers give it"
)]
fn text_of(address: &str) -> Result<Response, Instead> {
    let document = document_at(address).ok_or_else(no_document)?;
    Ok(raw("text/markdown; charset=utf-8", document.source))
}

fn no_document() -> HttpError {
    HttpError::not_found("there is no such document")
}

fn show(address: &str) -> Result<Response, HttpError> {
    let document = document_at(address);
    let document = document.ok_or_else(no_document)?;
    let page = Page::open("document.html", &document.title).with_script("docs.js");
    page.show(context! {
        nav => nav(address, "")?,
        address => &document.address,
        html => Value::from_safe_string(document.html.clone()),
        headings => headings(document),
    })
}

/// Renders the list of all documents, and the form that searches them.
fn nav(address: &str, asked: &str) -> Result<Value, HttpError> {
    let shown = context! { shelves => shown(&*LIBRARY), address => address, asked => asked };
    piece("docs_nav.html", shown)
}

/// Returns the entries of the document's table of contents.
fn headings(document: &Document) -> Vec<Value> {
    let headings = document.sections.iter().filter(|one| one.depth == 2);
    let headings = headings.map(|one| context! { anchor => &one.anchor, text => &one.heading });
    headings.collect()
}

fn raw(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=300"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}
