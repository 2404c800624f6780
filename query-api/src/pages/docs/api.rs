//! `GET /docs/reference/api` and a page below it for each part: the API's description, to read and
//! to try.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use minijinja::{Value, context};
use service::HttpError;

use super::super::frame::{Page, answer, shown};
use super::library::API;
use super::operations::{self, Part};
use crate::documents::openapi;

static DESCRIBED: LazyLock<Vec<Part>> = LazyLock::new(|| operations::parts(&openapi::document()));
static PARTS: LazyLock<Value> = LazyLock::new(|| shown(&*DESCRIBED));
static OPERATIONS: LazyLock<Vec<Called>> = LazyLock::new(|| {
    let of = |part: &'static Part| part.operations.iter().map(move |one| (part, one));
    let all = DESCRIBED.iter().flat_map(of);
    all.map(|(part, one)| Called {
        address: format!("{API}/{}#{}", part.anchor, one.id),
        line: format!("{} {}", one.method, one.path),
        summary: one.summary.clone(),
        id: one.id.clone(),
    })
    .collect()
});

/// The longest pages, identical for all readers: rendered once, plain and compressed.
static PAGES: LazyLock<Result<Vec<Written>, minijinja::Error>> = LazyLock::new(|| {
    let index = write("docs_api.html", &Value::UNDEFINED);
    let parts = DESCRIBED
        .iter()
        .map(|part| write("docs.html", &shown(part)));
    std::iter::once(index).chain(parts).collect()
});

/// The searchable texts of an operation.
pub(super) struct Called {
    pub(super) address: String,
    pub(super) line: String,
    pub(super) summary: String,
    pub(super) id: String,
}

struct Written {
    html: String,
    compressed: Vec<u8>,
}

fn write(template: &'static str, part: &Value) -> Result<Written, minijinja::Error> {
    let page = Page::open(template, "API").with_script("docs.js");
    let html = page.render(context! { parts => PARTS.clone(), part => part })?;
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let written = compressed.write_all(html.as_bytes());
    let compressed = written.and_then(|()| compressed.finish());
    Ok(Written {
        html,
        compressed: compressed.unwrap_or_default(),
    })
}

pub(super) async fn show_index(headers: HeaderMap) -> Result<Response, HttpError> {
    show(&headers, 0)
}

pub(super) async fn show_part(
    headers: HeaderMap,
    Path(part): Path<String>,
) -> Result<Response, HttpError> {
    let nth = DESCRIBED.iter().position(|known| known.anchor == part);
    let nth = nth.ok_or_else(|| HttpError::not_found("there is no such part of the API"))?;
    show(&headers, nth + 1)
}

fn show(headers: &HeaderMap, nth: usize) -> Result<Response, HttpError> {
    let page = &PAGES.as_ref().map_err(HttpError::internal)?[nth];
    let vary = (VARY, HeaderValue::from_static("accept-encoding"));
    if takes_gzip(headers) && !page.compressed.is_empty() {
        let encoding = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return Ok(answer(([vary, encoding], page.compressed.as_slice())));
    }
    Ok(answer(([vary], page.html.as_str())))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    let mut codings = accepted
        .into_iter()
        .flat_map(|accepted| accepted.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim() == "gzip" && !refused
    })
}

/// Returns all operations, each with its location.
pub(super) fn overview() -> Value {
    PARTS.clone()
}

/// Returns the searchable texts of all operations.
pub(super) fn operations() -> &'static [Called] {
    &OPERATIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size that a phone far from a city loads in a second or two.
    const HEAVIEST: usize = 150_000;

    #[test]
    fn no_page_of_the_description_is_heavy() {
        let pages = PAGES.as_ref().unwrap();
        assert_eq!(pages.len(), DESCRIBED.len() + 1);
        let weights: Vec<_> = pages.iter().map(|page| page.html.len()).collect();
        let names = DESCRIBED.iter().map(|part| part.anchor.as_str());
        let names: Vec<_> = std::iter::once("index").chain(names).collect();
        assert!(
            weights.iter().all(|weight| *weight <= HEAVIEST),
            "{names:?}: {weights:?}"
        );
    }

    #[test]
    fn the_index_leads_on_from_every_address_within_the_page_that_held_all() {
        let index = &PAGES.as_ref().unwrap()[0].html;
        for part in &*DESCRIBED {
            assert!(index.contains(&format!("id=\"{}\"", part.anchor)));
        }
        for called in operations() {
            let link = format!("<li id=\"{}\"", called.id);
            assert!(index.contains(&link), "{link}");
            let plain = index.replace("&#x2f;", "/");
            assert!(plain.contains(&format!("href=\"{}\"", called.address)));
        }
    }
}
