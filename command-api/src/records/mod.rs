//! Business records: one by one, line by line, and from files.

mod answers;
mod batch;
mod create;
mod delete;
mod import;
mod lines;
mod ndjson;
mod put;

use axum::Router;
use axum::routing::{post, put as put_route};
use domain::record::Kind;
use service::HttpError;

pub use create::{NewRecord, create};
pub use delete::delete;
pub use import::{Import, ImportError, Imported, Rejected, Row, import};
pub use put::put;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/records/{kind}", post(create::create_records))
        .route(
            "/api/v1/records/{kind}/{id}",
            put_route(put::put_record).delete(delete::delete_record),
        )
}

fn parse_kind(name: &str) -> Result<Kind, HttpError> {
    Kind::parse(name).ok_or_else(|| HttpError::not_found("there is no such kind of record"))
}
