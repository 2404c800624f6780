//! Lists of business records, of any length and from any page at the same cost.

use axum::http::Uri;
use axum::response::Response;
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::paging::{DEFAULT_LIMIT, Listed, Page, Parameters};
use crate::search::{Hits, Kind, Search};

/// A record as it was found in a list.
pub(super) trait Found: Listed {
    /// How many the whole list has.
    fn total(&self) -> i64;
}

/// What a request asks a list for.
pub(super) struct Asked {
    pub(super) search: Search,
    pub(super) page: Page,
}

impl Asked {
    pub(super) fn of(parameters: &Parameters, kind: &Kind) -> Result<Self, HttpError> {
        let search = Search::asked_for(parameters, kind)?;
        let page = Page::asked_in(parameters, search.by, DEFAULT_LIMIT)?;
        Ok(Self { search, page })
    }

    /// Answers with what was found.
    pub(super) fn answer<T: Serialize>(&self, uri: &Uri, hits: Hits<T>) -> Response {
        self.page.answer(uri, hits.rows, hits.total)
    }
}

/// A list by the names under which it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    pub(super) kind: &'static str,
    pub(super) of: Of<'a>,
}

/// What of a kind a list has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of<'a> {
    /// All of it where this is empty, else what has a state.
    State(&'a str),
    /// What has this text in a field, whatever its case.
    Value(&'static str, &'a str),
}

impl List<'_> {
    /// Answers with the rows of a page. Past the end no row says how many there are, so that this
    /// is looked up by itself.
    pub(super) async fn answer<T: Found>(
        self,
        rows: Vec<T>,
        page: &Page,
        uri: &Uri,
        (org, models): (&OrgId, &PgPool),
    ) -> Result<Response, HttpError> {
        let total = match rows.first() {
            Some(row) => row.total(),
            None => self.count(org, models).await?,
        };
        Ok(page.answer(uri, rows, total))
    }

    async fn count(self, org: &OrgId, models: &PgPool) -> Result<i64, sqlx::Error> {
        let (org, kind) = (org.as_str(), self.kind);
        match self.of {
            Of::State(state) => {
                sqlx::query_scalar!(
                    r#"SELECT coalesce(sum(count), 0)::bigint AS "total!" FROM totals
                       WHERE org_id = $1 AND kind = $2 AND parent = '' AND state = $3"#,
                    org,
                    kind,
                    state,
                )
                .fetch_one(models)
                .await
            }
            Of::Value(field, value) => {
                sqlx::query_scalar!(
                    r#"SELECT coalesce(sum(count), 0)::bigint AS "total!" FROM field_totals
                       WHERE org_id = $1 AND kind = $2 AND field = $3 AND value = lower($4)"#,
                    org,
                    kind,
                    field,
                    value,
                )
                .fetch_one(models)
                .await
            }
        }
    }
}
