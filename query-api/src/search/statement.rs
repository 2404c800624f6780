//! The statements that find records.

use chrono::{DateTime, Utc};
use futures::future::try_join;
use schemas::OrgId;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder, Row as _};

use super::asked::Search;
use super::counts::{Counts, Found, Version};
use super::kind::{Kind, States};
use crate::paging::{Listed, Page, Place, Sorted};

/// A record that was found, and where it stands in its list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Hit<T> {
    pub(crate) record: T,
    #[serde(skip)]
    place: Place,
    #[serde(skip)]
    created_at: DateTime<Utc>,
    #[serde(skip)]
    id: String,
}

/// A page of what was found.
#[derive(Debug)]
pub(crate) struct Hits<T> {
    pub(crate) rows: Vec<Hit<T>>,
    /// How many were found altogether.
    pub(crate) total: i64,
}

/// What a page is looked for within.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) org: &'a OrgId,
    /// The state that the list is filtered by; empty for all.
    pub(crate) state: &'a str,
    /// No more than so many are counted, where it need not be exact.
    pub(crate) counted_to: Option<i64>,
}

impl<T> Hits<T> {
    /// The same with the records as something else.
    pub(crate) fn map<U>(self, map: impl Fn(T) -> U) -> Hits<U> {
        let rows = self.rows.into_iter().map(|hit| Hit {
            record: map(hit.record),
            place: hit.place,
            created_at: hit.created_at,
            id: hit.id,
        });
        Hits {
            rows: rows.collect(),
            total: self.total,
        }
    }
}

impl<T: Serialize> Listed for Hit<T> {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn place(&self) -> Place {
        self.place.clone()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl<'r, T: FromRow<'r, PgRow>> FromRow<'r, PgRow> for Hit<T> {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let name: Option<String> = row.try_get("place_name")?;
        let amount: Option<i64> = row.try_get("place_amount")?;
        let created_at: DateTime<Utc> = row.try_get("created_at")?;
        let place = match (name, amount) {
            (Some(name), _) => Place::Name(name),
            (None, Some(amount)) => Place::Amount(amount),
            (None, None) => Place::Created(created_at),
        };
        Ok(Self {
            record: T::from_row(row)?,
            place,
            created_at,
            id: row.try_get("id")?,
        })
    }
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

    /// Those of one state; of every state where it is empty.
    pub(crate) fn of_state(self, state: &'a str) -> Self {
        Self { state, ..self }
    }

    /// Finds a page. `columns` are SQL, over the kind's table. Where counting what was found takes
    /// long, it goes on beside, and the total may be that of a moment later.
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
        let mut query = self.page(columns, search, page);
        let found = query.build_query_as::<Hit<T>>().persistent(false);
        let found = found.fetch_all(models);
        let (rows, total) = try_join(found, self.total(search, models, counts)).await?;
        Ok(Hits { rows, total })
    }

    /// How many there are: from the counters where these know, else counted, unless it is known
    /// from before and nothing has changed.
    async fn total(
        self,
        search: &Search,
        models: &PgPool,
        counts: &Counts,
    ) -> Result<i64, sqlx::Error> {
        let is_counted = self.state.is_empty() || matches!(self.kind.states, States::Counted(_));
        if search.text.is_none() && is_counted {
            return self.count_by_counters(models).await;
        }
        let counted = Found {
            org: self.org.clone(),
            kind: self.kind.table,
            state: self.state.to_owned(),
            pattern: search.pattern(),
            counted_to: self.counted_to,
        };
        if let Some(version) = Version::now(self.org, self.kind.table, models).await?
            && let Some(count) = counts.known(&counted, version)
        {
            return Ok(count);
        }
        let mut query = self.count(search);
        let found = query.build_query_as::<(i64, Option<i64>, Option<DateTime<Utc>>)>();
        let (count, sequence, changed_at) = found.persistent(false).fetch_one(models).await?;
        if let Some(version) = Version::of(sequence, changed_at) {
            counts.keep(counted, version, count);
        }
        Ok(count)
    }

    async fn count_by_counters(self, models: &PgPool) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar!(
            r#"SELECT coalesce(sum(count), 0)::bigint AS "total!" FROM totals
               WHERE org_id = $1 AND kind = $2 AND parent = '' AND state = $3"#,
            self.org.as_str(),
            self.kind.table,
            self.state,
        )
        .fetch_one(models)
        .await
    }

    fn page(self, columns: &'static str, search: &Search, page: &Page) -> QueryBuilder<Postgres> {
        let key = self.key(search.by);
        let (name, amount) = match search.by {
            Sorted::Created => ("NULL::text", "NULL::bigint"),
            Sorted::Name => (key, "NULL::bigint"),
            Sorted::Amount => ("NULL::text", key),
        };
        let mut query = QueryBuilder::new("SELECT id, created_at, ");
        query.push(columns).push(", ").push(name);
        query.push(" AS place_name, ").push(amount);
        query.push(" AS place_amount FROM ").push(self.kind.table);
        self.conditions(&mut query, search);
        if let Some((place, id)) = page.after() {
            follow(&mut query, key, search.descending, place, id);
        }
        query.push(" ORDER BY ").push(key);
        query.push(if search.descending { " DESC" } else { "" });
        query.push(", id OFFSET ").push_bind(page.offset());
        query.push(" LIMIT ").push_bind(page.fetched());
        query
    }

    fn key(self, by: Sorted) -> &'static str {
        match by {
            Sorted::Created => "created_at",
            Sorted::Name => self.kind.name,
            Sorted::Amount => self.kind.amount.unwrap_or("created_at"),
        }
    }

    /// How many are found, and the version of what they were counted in.
    fn count(self, search: &Search) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("SELECT found.count, sequence, changed_at FROM ");
        query.push("(SELECT count(*) AS count FROM (SELECT FROM ");
        query.push(self.kind.table);
        self.conditions(&mut query, search);
        if let Some(most) = self.counted_to {
            query.push(" LIMIT ").push_bind(most);
        }
        query.push(") AS rows) AS found LEFT JOIN record_changes ON org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        query.push(" AND kind = ").push_bind(self.kind.table);
        query
    }

    /// What all that is found has in common.
    fn conditions(self, query: &mut QueryBuilder<Postgres>, search: &Search) {
        query.push(" WHERE org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        if let Some(column) = self.kind.states.column().filter(|_| !self.state.is_empty()) {
            query.push(" AND ").push(column).push(" = ");
            query.push_bind(self.state.to_owned());
        }
        if let Some(pattern) = search.pattern() {
            query.push(" AND ").push(self.kind.found_by).push(" ILIKE ");
            query.push_bind(pattern);
        }
    }
}

/// Only what comes behind a place: by its key, and among those of the same key by its id.
fn follow(
    query: &mut QueryBuilder<Postgres>,
    key: &'static str,
    descending: bool,
    place: &Place,
    id: &str,
) {
    let further = if descending { " < " } else { " > " };
    let bound = |query: &mut QueryBuilder<Postgres>| {
        match place {
            Place::Created(time) => query.push_bind(*time),
            Place::Name(name) => query.push_bind(name.clone()),
            Place::Amount(amount) => query.push_bind(*amount),
        };
    };
    // The first comparison alone bounds the index; the rest only tells ties apart.
    query.push(" AND ").push(key);
    query.push(if descending { " <= " } else { " >= " });
    bound(query);
    query.push(" AND (").push(key).push(further);
    bound(query);
    query.push(" OR id > ").push_bind(id.to_owned()).push(")");
}
