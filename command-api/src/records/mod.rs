//! Business records: one by one, line by line, and from files.

mod answers;
mod batch;
mod beginning;
mod cells;
mod create;
mod delete;
mod import;
mod line_splitter;
mod lines;
mod ndjson;
mod order;
mod past;
mod put;
mod rest;
mod table;
mod unchanged;
mod unpacked;
mod upload;

use axum::routing::{post, put as put_route};
use axum::{Extension, Router};
use domain::record::Kind;

pub use cells::delimiter_of;
pub use create::{NewRecord, create};
pub use delete::{NotDeleted, delete};
pub use import::{
    CHUNK, Fault, FilePosition, Import, ImportError, Imported, Rejected, Row, import,
};
pub use upload::UploadSettings;
pub(crate) use upload::Uploads;

use crate::App;

/// Each kind has routes of its own, so that an unknown kind is an unknown path.
pub(crate) fn router() -> Router<App> {
    Kind::ALL.iter().fold(Router::new(), |router, kind| {
        let all = format!("/api/v1/records/{}", kind.name());
        let one = format!("{all}/{{id}}");
        let records = post(create::create_records);
        let record = put_route(put::put_record).delete(delete::delete_record);
        router
            .route(&all, records.layer(Extension(*kind)))
            .route(&one, record.layer(Extension(*kind)))
    })
}
