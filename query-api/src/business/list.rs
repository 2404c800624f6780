//! Lists of business records, of any length and from any page at the same cost.

use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::paging::{DEFAULT_LIMIT, Listed, Page, Parameters};
use crate::search::{Counts, Hits, Kind, Search, Within};

/// A record found in a list.
pub(super) trait Found: Listed {
    /// The number of records in the whole list.
    fn total(&self) -> i64;
}

/// The search and the page that a request asks for.
pub(super) struct ListQuery {
    pub(super) search: Search,
    pub(super) page: Page,
}

impl ListQuery {
    pub(super) fn of(parameters: &Parameters, kind: &Kind) -> Result<Self, HttpError> {
        let search = Search::from_parameters(parameters, kind)?;
        let page = Page::asked_in(parameters, search.by, DEFAULT_LIMIT)?;
        Ok(Self { search, page })
    }

    /// Returns a response with the hits.
    pub(super) fn answer<T: Serialize>(&self, uri: &Uri, hits: Hits<T>) -> Response {
        self.page.answer(uri, hits.rows, hits.total)
    }

    /// Returns a response with the rows of a page. Past the end no row has the total, so it is
    /// looked up separately.
    pub(super) async fn answer_rows<T: Found>(
        &self,
        uri: &Uri,
        rows: Vec<T>,
        within: Within<'_>,
        reading: (&PgPool, &Counts),
    ) -> Result<Response, HttpError> {
        let total = match rows.first() {
            Some(row) => row.total(),
            None => within.total(&self.search, None, reading).await?,
        };
        Ok(self.page.answer(uri, rows, total))
    }
}
