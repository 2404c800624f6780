//! The statements that find records.

use futures::future::try_join;
use schemas::OrgId;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};

use super::counts::Counts;
use super::hit::{Found, Hits};
use super::kind::{Kind, is_known_by_key};
use super::query::{Search, anywhere};
use super::rarest::Part;
use crate::paging::{Grouping, Page};

/// The list that is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) org: &'a OrgId,
    /// The state to filter by; empty for all.
    pub(crate) state: &'a str,
    /// Maximum count, if it need not be exact.
    pub(crate) counted_to: Option<i64>,
}

impl<'a> Within<'a> {
    /// All records of a kind that an organization has.
    pub(crate) fn all(kind: &'static Kind, org: &'a OrgId) -> Self {
        Self {
            kind,
            org,
            state: "",
            counted_to: None,
        }
    }

    /// Only the records of one state, or of every state if it is empty.
    pub(crate) fn of_state(self, state: &'a str) -> Self {
        Self { state, ..self }
    }

    /// Whether the key alone shows that a record is in the state.
    pub(crate) fn is_known_by_key(&self) -> bool {
        is_known_by_key(self.state)
    }

    /// Finds a page, a search in its turn. `columns` are SQL, over the kind's table. Counting runs
    /// concurrently, so that the total may be slightly newer.
    pub(crate) async fn find<T>(
        self,
        columns: &'static str,
        search: &Search,
        page: &Page,
        (models, counts): (&PgPool, &Counts),
    ) -> Result<Hits<T>, sqlx::Error>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        // The beginning of a plain list costs the same however long the list is.
        let _turn = if search.is_plain() && self.state.is_empty() && page.offset() == 0 {
            None
        } else {
            Some(counts.turn(self.org, models).await?)
        };
        let part = self.rarest_part(search, models, counts).await?;
        let part = part.as_ref();
        let mut query = self.page(columns, (search, part), page);
        let found = query.build_query_as::<Found<T>>().persistent(false);
        let found = found.fetch_all(models);
        let (rows, total) = try_join(found, self.total(search, part, (models, counts))).await?;
        Ok(Hits::of(rows, search.by, total))
    }

    /// Appends the conditions of the search. If a part of the text is given, it is looked up
    /// instead of the whole text.
    pub(super) fn conditions(
        self,
        query: &mut QueryBuilder<Postgres>,
        search: &Search,
        part: Option<&Part>,
    ) {
        query.push(" WHERE org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        self.of_its_state(query);
        search.filter.conditions(query, self.kind);
        let Some(text) = &search.text else {
            return;
        };
        let looked_up = part.map_or(text, |part| &part.text);
        query.push(" AND search_text LIKE lower(");
        query.push_bind(anywhere(looked_up)).push(")");
        if part.is_some() {
            query.push(" AND strpos(search_text, lower(");
            query.push_bind(text.clone()).push(")) > 0");
        }
    }

    /// Restricts the records to the requested state.
    pub(super) fn of_its_state(self, query: &mut QueryBuilder<Postgres>) {
        let field = self.kind.field(Grouping::State);
        if let Some(field) = field.filter(|_| !self.state.is_empty()) {
            field.is(query, self.state);
        }
    }
}
