//! An organization's records as files.
//!
//! A kind states its columns and its query once ([`Kind`]). Everything else is the same for all
//! kinds. Rows are read from one snapshot, newest first, and written as they arrive: CSV goes
//! straight to the client while it keeps up ([`csv_stream`]), Excel and PDF through a temporary
//! file. Memory use is constant regardless of the number of rows, and no client makes the database
//! wait.

mod column;
mod companies;
mod contacts;
pub mod csv;
mod csv_stream;
mod deals;
mod document;
mod error;
mod excel;
mod files;
mod format;
mod packing;
mod pdf;
mod settings;
mod snapshot;
mod tuples;
mod version;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use access::{Access, Refusal, ScopeMarker, scope};
use axum::Router;
use axum::body::Body;
use axum::extract;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, stream};
use schemas::OrgId;
use service::outflow::{AtKeyEnd, StreamLimits, outflow};
use service::{Clock, HttpError, Share, Shares};
use sqlx::PgPool;
use tokio::time::{Instant, timeout, timeout_at};

pub use self::column::{Cell, Column, Content, Kind};
pub use self::companies::COMPANIES;
pub use self::contacts::CONTACTS;
use self::csv_stream::CsvStream;
pub use self::deals::DEALS;
pub use self::document::Title;
pub use self::error::ExportError;
pub use self::excel::ExcelWriter;
use self::files::Files;
pub use self::format::{Document, Format, Wanted};
use self::packing::Coding;
pub use self::pdf::{Fallbacks, PdfWriter};
pub use self::settings::ExportSettings;
use self::snapshot::{Reader, Snapshot};
pub use self::tuples::{Batch, Malformed};
use self::version::{Source, Version};
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

/// Returns all records of a kind to callers with the scope `S`.
fn export<S: ScopeMarker>(kind: &'static Kind) -> MethodRouter<State> {
    let handler = async move |reading: Reading<S>,
                              extract::State(exports): extract::State<Exports>,
                              extract::State(access): extract::State<Access>,
                              method: Method,
                              uri: Uri,
                              headers: HeaderMap| {
        let read_from = [kind.projection, Projection::Organizations];
        let models = reading.models(&read_from).await;
        models.map_err(only_listed_statuses)?;
        let wanted = Wanted::from_uri(&uri, kind)?;
        let ended = access.ended(reading.caller());
        let org = reading.org();
        exports
            .answer(org, wanted, (&method, &headers), ended)
            .await
    };
    get(handler)
}

/// The export API only returns the statuses that its description lists: failures after
/// authorization are a 500. An unreadable position is the caller's mistake, in a header that is not
/// part of that description.
fn only_listed_statuses(error: HttpError) -> HttpError {
    if error.status == StatusCode::BAD_REQUEST {
        return error;
    }
    error.with_status(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Makes exports, and limits their concurrency.
#[derive(Clone, Debug)]
pub struct Exports {
    pool: PgPool,
    clock: Arc<dyn Clock>,
    settings: ExportSettings,
    streams: Shares<OrgId>,
    documents: Shares<OrgId>,
    files: Files,
    fallbacks: Arc<Fallbacks>,
}

/// One requested file.
#[derive(Clone, Copy, Debug)]
struct ExportRequest {
    kind: &'static Kind,
    format: Format,
    since: Option<DateTime<Utc>>,
    coding: Coding,
    at: DateTime<Utc>,
}

impl Exports {
    /// Creates exports from the read models behind `pool`.
    pub fn new(pool: PgPool, clock: Arc<dyn Clock>, settings: ExportSettings) -> Self {
        Self {
            pool,
            clock,
            streams: Shares::new(settings.streams),
            documents: Shares::new(settings.documents),
            files: Files::new(settings.files, settings.file_bytes),
            fallbacks: Arc::new(Fallbacks::new(settings.fonts.clone())),
            settings,
        }
    }

    /// Answers a request for an organization's records as a file, whose transfer stops once `ended`
    /// resolves. Omits the file if the client already has it.
    pub async fn answer(
        &self,
        org: &OrgId,
        Wanted {
            kind,
            format,
            since,
        }: Wanted,
        (method, headers): (&Method, &HeaderMap),
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response, HttpError> {
        let request = ExportRequest {
            kind,
            format,
            since,
            coding: match format {
                Format::Csv => Coding::from_headers(headers),
                // Both formats are compressed internally.
                Format::Document(_) => Coding::Identity,
            },
            at: self.clock.now(),
        };
        let is_head = method == Method::HEAD;
        if is_head || is_conditional(headers) {
            let name = kind.projection.name();
            let source = Source::read(&self.pool, org, name).await;
            let version = source.map_err(ExportError::from)?.version(org, request);
            if version.is_known(headers) {
                return Ok(unchanged(&version));
            }
            if is_head {
                // A body of unknown length, as no one has counted the rows.
                let nothing = Body::from_stream(stream::empty::<io::Result<Bytes>>());
                return Ok(request.answer(&version, nothing));
            }
        }
        let deadline = Instant::now() + self.settings.deadline;
        let mut ended = Box::pin(ended);
        let made = tokio::select! {
            biased;
            () = &mut ended => return Err(Refusal::InvalidKey.into()),
            made = timeout_at(deadline, self.make(org, request)) => made,
        };
        let Made {
            pieces,
            length,
            version,
        } = made.map_err(|_| ExportError::Late)??;
        let limits = StreamLimits {
            kind: "export",
            stall: self.settings.stall,
            least_rate: self.settings.least_rate,
            deadline: Some(deadline),
        };
        let body = outflow(pieces, limits, ended, AtKeyEnd::BreakOff);
        let mut response = request.answer(&version, body);
        if let Some(length) = length {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(response)
    }

    async fn make(&self, org: &OrgId, request: ExportRequest) -> Result<Made, ExportError> {
        match request.format {
            Format::Csv => {
                let csv_stream = CsvStream {
                    org: org.clone(),
                    kind: request.kind,
                    coding: request.coding,
                    files: self.files.clone(),
                    lag: self.settings.lag,
                };
                let snapshot = self.open(org, request).await?;
                Ok(Made {
                    version: snapshot.source.version(org, request),
                    pieces: Box::pin(csv_stream.start(snapshot.batches)),
                    length: None,
                })
            }
            Format::Document(format) => {
                let spool = self.files.begin(org, self.settings.wait).await?;
                let place = self.turn(&self.documents, org).await?;
                let snapshot = self.open(org, request).await?;
                let version = snapshot.source.version(org, request);
                let fallbacks = self.fallbacks.clone();
                let writing = document::Writing {
                    request,
                    format,
                    fallbacks,
                };
                let spool = document::write(writing, snapshot, spool, place).await?;
                Ok(Made {
                    version,
                    length: Some(spool.length()),
                    pieces: Box::pin(spool.pieces()?),
                })
            }
        }
    }

    async fn open(&self, org: &OrgId, request: ExportRequest) -> Result<Snapshot, ExportError> {
        let reader = Reader {
            pool: self.pool.clone(),
            kind: request.kind,
            since: request.since,
            stall: match request.format {
                Format::Csv => self.settings.stall,
                // These rows do not wait for a client, only for the thread that writes the file,
                // which yields to everything else.
                Format::Document(_) => self.settings.deadline,
            },
            deadline: Instant::now() + self.settings.deadline,
            _place: self.turn(&self.streams, org).await?,
        };
        reader.open(org).await
    }

    async fn turn(&self, places: &Shares<OrgId>, org: &OrgId) -> Result<Share<OrgId>, ExportError> {
        let place = timeout(self.settings.wait, places.enter(org.clone())).await;
        place.map_err(|_| ExportError::Busy)
    }
}

/// A file about to be sent.
struct Made {
    pieces: Pieces,
    /// Its length in bytes, if known.
    length: Option<u64>,
    version: Version,
}

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, ExportError>> + Send>>;

impl ExportRequest {
    fn answer(self, version: &Version, body: Body) -> Response {
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
        let mut response = (headers, body).into_response();
        version.tell(response.headers_mut());
        if let Some(coding) = self.coding.name() {
            let coding = HeaderValue::from_static(coding);
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, coding);
        }
        response
    }
}

/// Whether a client has a file and only asks for a different one.
fn is_conditional(headers: &HeaderMap) -> bool {
    let conditions = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];
    conditions.iter().any(|name| headers.contains_key(name))
}

fn unchanged(version: &Version) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    version.tell(response.headers_mut());
    response
}
