//! An organization's records as files.
//!
//! A kind states its columns and its query once ([`Kind`]); everything else is the same for all
//! kinds. Rows are read from one snapshot, newest first, and written as they come: CSV goes
//! straight to the client, Excel and PDF by way of a temporary file. Memory stays flat however
//! many rows there are.

mod column;
mod companies;
mod contacts;
pub mod csv;
mod deals;
mod document;
mod error;
mod excel;
mod format;
mod pdf;
mod settings;
mod snapshot;
mod tuples;

use std::io;
use std::sync::Arc;

use access::{ScopeMarker, scope};
use axum::Router;
use axum::body::Body;
use axum::extract;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt, stream};
use schemas::OrgId;
use service::{Clock, HttpError};
use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::wrappers::ReceiverStream;

pub use self::column::{Cell, Column, Content, Kind};
pub use self::companies::COMPANIES;
pub use self::contacts::CONTACTS;
pub use self::deals::DEALS;
pub use self::document::Title;
pub use self::error::ExportError;
pub use self::excel::ExcelWriter;
pub use self::format::{Document, Format};
pub use self::pdf::PdfWriter;
pub use self::settings::ExportSettings;
use self::snapshot::{Reader, Snapshot};
pub use self::tuples::{Batch, Malformed};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route(
            "/api/export/companies",
            export::<scope::ExportCompanies>(&COMPANIES),
        )
        .route("/api/export/deals", export::<scope::ExportDeals>(&DEALS))
        .route(
            "/api/export/contacts",
            export::<scope::ExportContacts>(&CONTACTS),
        )
}

/// Answers with all records of a kind to callers who have the scope `S`.
fn export<S: ScopeMarker>(kind: &'static Kind) -> MethodRouter<State> {
    let handler = async move |reading: Reading<S>,
                              extract::State(exports): extract::State<Exports>,
                              method: Method,
                              uri: Uri| {
        let read_from = [kind.projection, Projection::Organizations];
        let models = reading.models(&read_from).await;
        models.map_err(only_listed_statuses)?;
        let (kind, format) = Format::asked_for(&uri, kind);
        exports.answer(reading.org(), kind, format, &method).await
    };
    get(handler)
}

/// The export API answers with no other statuses than those its description lists: what fails
/// once the caller is known to be allowed is a 500. A position that cannot be read is the caller's
/// own slip, and of a header that is not that description's.
fn only_listed_statuses(error: HttpError) -> HttpError {
    if error.status == StatusCode::BAD_REQUEST {
        return error;
    }
    error.with_status(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What makes exports, and bounds how many are made at a time.
#[derive(Clone, Debug)]
pub struct Exports {
    pool: PgPool,
    clock: Arc<dyn Clock>,
    settings: ExportSettings,
    streams: Arc<Semaphore>,
    documents: Arc<Semaphore>,
}

/// One file that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    kind: &'static Kind,
    format: Format,
    at: DateTime<Utc>,
}

impl Exports {
    /// Exports from the read models behind `pool`.
    pub fn new(pool: PgPool, clock: Arc<dyn Clock>, settings: ExportSettings) -> Self {
        Self {
            pool,
            clock,
            streams: Arc::new(Semaphore::new(settings.streams)),
            documents: Arc::new(Semaphore::new(settings.documents)),
            settings,
        }
    }

    /// Answers a request for an organization's records as a file.
    pub async fn answer(
        &self,
        org: &OrgId,
        kind: &'static Kind,
        format: Format,
        method: &Method,
    ) -> Result<Response, HttpError> {
        let asked = Asked {
            kind,
            format,
            at: self.clock.now(),
        };
        if method == Method::HEAD {
            // A body of a length that is not known, as nobody has counted the rows.
            return Ok(asked.answer(Body::from_stream(stream::empty::<io::Result<Bytes>>())));
        }
        Ok(match format {
            Format::Csv => self.stream(org, asked).await?,
            Format::Document(document) => self.document(org, asked, document).await?,
        })
    }

    async fn stream(&self, org: &OrgId, asked: Asked) -> Result<Response, ExportError> {
        let snapshot = self.open(org, asked.kind).await?;
        let rows = csv_rows(asked.kind, snapshot);
        Ok(asked.answer(Body::from_stream(rows)))
    }

    async fn document(
        &self,
        org: &OrgId,
        asked: Asked,
        format: Document,
    ) -> Result<Response, ExportError> {
        let permit = self.turn(&self.documents).await?;
        let snapshot = self.open(org, asked.kind).await?;
        let file = document::write(asked, format, snapshot, permit).await?;
        let length = HeaderValue::from(file.length);
        let mut response = asked.answer(file.into_body());
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
        Ok(response)
    }

    async fn open(&self, org: &OrgId, kind: &'static Kind) -> Result<Snapshot, ExportError> {
        let reader = Reader {
            pool: self.pool.clone(),
            kind,
            stall: self.settings.stall,
            _permit: self.turn(&self.streams).await?,
        };
        reader.open(org).await
    }

    async fn turn(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ExportError> {
        let place = Arc::clone(places).acquire_owned();
        match tokio::time::timeout(self.settings.wait, place).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(ExportError::Busy),
        }
    }
}

impl Asked {
    fn answer(self, body: Body) -> Response {
        let disposition = format!(
            "attachment; filename=\"{}-{}.{}\"",
            self.kind.name,
            self.at.format("%Y-%m-%d"),
            self.format.extension()
        );
        let headers = [
            (header::CONTENT_TYPE, self.format.content_type().to_owned()),
            (header::CONTENT_DISPOSITION, disposition),
        ];
        (headers, body).into_response()
    }
}

/// The rows as CSV, a batch at a time. An error breaks the connection off, so that no client
/// takes a part for the whole.
fn csv_rows(
    kind: &'static Kind,
    snapshot: Snapshot,
) -> impl Stream<Item = Result<Bytes, ExportError>> {
    let mut header = Vec::new();
    csv::write_header(kind.columns, &mut header);
    let rows = ReceiverStream::new(snapshot.batches).map(|batch| {
        let written = batch.and_then(|batch| csv_of(kind, &batch));
        if let Err(error) = &written {
            tracing::warn!(%error, kind = kind.name, "An export broke off");
        }
        written
    });
    stream::iter([Ok(Bytes::from(header))]).chain(rows)
}

fn csv_of(kind: &Kind, batch: &Batch) -> Result<Bytes, ExportError> {
    let mut out = Vec::with_capacity(batch.len());
    batch.each_row(kind.columns, |cells| {
        csv::write_row(cells, &mut out);
        Ok::<_, Malformed>(())
    })?;
    Ok(out.into())
}
