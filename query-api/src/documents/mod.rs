//! Machine-readable descriptions of the API: `GET /openapi.json` and `GET /asyncapi.json`.
//!
//! Both are built from the code in this module on the first request. The copies under `docs/` are
//! for readers, and a test keeps them identical.

mod asyncapi;
pub(crate) mod openapi;

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use serde_json::Value;

use crate::state::State;

static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| written(&openapi::document()));
static ASYNCAPI: LazyLock<Bytes> = LazyLock::new(|| written(&asyncapi::document()));

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/openapi.json", document(&OPENAPI))
        .route("/asyncapi.json", document(&ASYNCAPI))
}

fn document(document: &'static LazyLock<Bytes>) -> MethodRouter<State> {
    get(async || {
        let headers = [
            (CONTENT_TYPE, "application/json"),
            (CACHE_CONTROL, "public, max-age=300"),
        ];
        (headers, Bytes::clone(document)).into_response()
    })
}

fn written(document: &Value) -> Bytes {
    document.to_string().into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `UPDATE_DOCUMENTS=1 cargo test -p query-api documents` rewrites the copies.
    fn is_the_copy(name: &str, document: &Value) {
        let document = serde_json::to_string_pretty(document).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(name);
        if std::env::var_os("UPDATE_DOCUMENTS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &document).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(copy == document, "docs/{name} is stale: UPDATE_DOCUMENTS=1");
    }

    #[test]
    fn the_copy_of_the_openapi_document_is_up_to_date() {
        is_the_copy("openapi.json", &openapi::document());
    }

    #[test]
    fn the_copy_of_the_asyncapi_document_is_up_to_date() {
        is_the_copy("asyncapi.json", &asyncapi::document());
    }
}
