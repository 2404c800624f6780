//! The total number of records in a list.

use chrono::{DateTime, Utc};
use futures::future::try_join;
use sqlx::{PgPool, Postgres, QueryBuilder};

use super::counts::{Counted, Counts, Version};
use super::filter::Filter;
use super::kind::{Field, is_known_by_key};
use super::query::Search;
use super::rarest::Part;
use super::statement::Within;
use crate::paging::Grouping;

impl Within<'_> {
    /// Returns the total: from the counters if they cover it, else counted, unless a cached count
    /// is still current. If a part of the text is given, it is looked up.
    pub(crate) async fn total(
        self,
        search: &Search,
        part: Option<&Part>,
        (models, counts): (&PgPool, &Counts),
    ) -> Result<i64, sqlx::Error> {
        let is_counted = self.state.is_empty() || self.kind.counts_states;
        if search.text.is_none() && search.filter.values.is_empty() && is_counted {
            return match (search.filter.from, search.filter.before) {
                (None, None) => self.count_by_counters(models).await,
                span => self.count_by_blocks(span, models).await,
            };
        }
        let of_value = self.counted_value(search);
        if let Some((field, value)) = of_value
            && !search.filter.has_span()
        {
            let count = self.count_by_value(field, value, models).await?;
            return Ok(self.counted_to.map_or(count, |most| count.min(most)));
        }
        let counted = Counted {
            org: self.org.clone(),
            kind: self.kind.table,
            state: self.state.to_owned(),
            filter: search.filter.clone(),
            text: search.text.clone(),
            at_most: self.counted_to,
        };
        if let Some(version) = Version::now(self.org, self.kind.table, models).await?
            && let Some(count) = counts.known(&counted, version)
        {
            return Ok(count);
        }
        let mut query = match of_value {
            Some(of_value) if self.is_mostly_within(&search.filter, models).await? => {
                self.count_without(search, of_value)
            }
            _ => self.count(search, part),
        };
        let found = query.build_query_as::<(i64, Option<i64>, Option<DateTime<Utc>>)>();
        let (count, sequence, changed_at) = found.persistent(false).fetch_one(models).await?;
        if let Some(version) = Version::of(sequence, changed_at) {
            counts.keep(counted, version, count);
        }
        Ok(count)
    }

    /// Returns the only value that filters the list, besides a span, if its field is counted.
    fn counted_value<'a>(&'a self, search: &'a Search) -> Option<(&'static Field, &'a str)> {
        if search.text.is_some() {
            return None;
        }
        let state = (!self.state.is_empty()).then_some((Grouping::State, self.state));
        let values = search
            .filter
            .values
            .iter()
            .map(|(of, value)| (*of, value.as_str()));
        let mut all = values.chain(state);
        let (of, value) = all.next().filter(|_| all.next().is_none())?;
        let field = self.kind.field(of).filter(|field| field.is_counted)?;
        // Longer values are compared by more than what is counted.
        is_known_by_key(value).then_some((field, value))
    }

    async fn count_by_value(
        self,
        field: &Field,
        value: &str,
        models: &PgPool,
    ) -> Result<i64, sqlx::Error> {
        let mut query = QueryBuilder::new("SELECT ");
        self.push_count_of(&mut query, field, value);
        query.build_query_scalar().fetch_one(models).await
    }

    /// Appends SQL for the number of records with a counted value.
    fn push_count_of(self, query: &mut QueryBuilder<Postgres>, field: &Field, value: &str) {
        query.push("coalesce((SELECT count FROM field_totals WHERE org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        query.push(" AND kind = ").push_bind(self.kind.table);
        query.push(" AND field = ").push_bind(field.column);
        query
            .push(" AND value = lower(")
            .push_bind(value.to_owned());
        query.push(")), 0)");
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

    /// Counts the records created within a span: the rows before its end in the list's order, minus
    /// those before its beginning, by the counted blocks of the list. Rows are only read in the two
    /// blocks in which the span begins and ends.
    async fn count_by_blocks(
        self,
        (from, before): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
        models: &PgPool,
    ) -> Result<i64, sqlx::Error> {
        let mut query = QueryBuilder::new("SELECT greatest(0, ");
        self.count_since(&mut query, from);
        if let Some(before) = before {
            query.push(" - ");
            self.count_since(&mut query, Some(before));
        }
        query.push(")::bigint");
        let count = query.build_query_scalar().persistent(false);
        count.fetch_one(models).await
    }

    /// Appends SQL that counts the rows of the list created since a time. The list's blocks that
    /// begin at that time or later count as a whole, except for the last of them.
    fn count_since(self, query: &mut QueryBuilder<Postgres>, time: Option<DateTime<Utc>>) {
        let blocks = |query: &mut QueryBuilder<Postgres>, level: i16| {
            query.push(" FROM list_blocks WHERE org_id = ");
            query.push_bind(self.org.as_str().to_owned());
            query.push(" AND kind = ").push_bind(self.kind.table);
            query
                .push(" AND parent = '' AND state = ")
                .push_bind(self.state.to_owned());
            query.push(" AND level = ").push_bind(level);
        };
        let Some(time) = time else {
            query.push("(SELECT coalesce(sum(count), 0)");
            blocks(query, 2);
            query.push(")");
            return;
        };
        query.push("(WITH ");
        for (name, level) in [("part", 2), ("block", 1)] {
            query
                .push(name)
                .push(" AS MATERIALIZED (SELECT age, id, created_at");
            blocks(query, level);
            query
                .push(" AND age <= ")
                .push_bind(-time.timestamp_micros());
            query.push(" ORDER BY age DESC, id DESC LIMIT 1), ");
        }
        query.push("counts AS (SELECT sum(count) AS count");
        blocks(query, 2);
        query.push(" AND (age, id) < ((SELECT age FROM part), (SELECT id FROM part))");
        query.push(" UNION ALL SELECT sum(count)");
        blocks(query, 1);
        query.push(" AND (age, id) >= ((SELECT age FROM part), (SELECT id FROM part))");
        query.push(" AND (age, id) < ((SELECT age FROM block), (SELECT id FROM block))");
        for (at, more) in [("=", " AND id >= (SELECT id FROM block)"), ("<", "")] {
            query
                .push(" UNION ALL SELECT count(*) FROM ")
                .push(self.kind.table);
            query
                .push(" WHERE org_id = ")
                .push_bind(self.org.as_str().to_owned());
            self.of_its_state(query);
            query
                .push(" AND created_at ")
                .push(at)
                .push(" (SELECT created_at FROM block)");
            query.push(more).push(" AND created_at >= ").push_bind(time);
        }
        query.push(") SELECT coalesce(sum(count), 0) FROM counts)");
    }

    /// Whether more than half of all records were created within a filter's span. For a limited
    /// count, it does not matter.
    async fn is_mostly_within(self, filter: &Filter, models: &PgPool) -> Result<bool, sqlx::Error> {
        if self.counted_to.is_some() {
            return Ok(false);
        }
        let all = self.of_state("");
        let within = all.count_by_blocks((filter.from, filter.before), models);
        let (within, of) = try_join(within, all.count_by_counters(models)).await?;
        Ok(within > of / 2)
    }

    /// Counts the records found, with the version that they were counted in.
    fn count(self, search: &Search, part: Option<&Part>) -> QueryBuilder<Postgres> {
        self.with_version(|query| {
            query.push("count(*) AS count FROM (SELECT FROM ");
            query.push(self.kind.table);
            self.conditions(query, search, part);
            if let Some(most) = self.counted_to {
                query.push(" LIMIT ").push_bind(most);
            }
            query.push(") AS rows");
        })
    }

    /// The same for a counted value within a span: all records with the value, minus those from
    /// before the span and from after it.
    fn count_without(
        self,
        search: &Search,
        (field, value): (&Field, &str),
    ) -> QueryBuilder<Postgres> {
        self.with_version(|query| {
            self.push_count_of(query, field, value);
            for outside in search.filter.outside() {
                query
                    .push(" - (SELECT count(*) FROM ")
                    .push(self.kind.table);
                query.push(" WHERE org_id = ");
                query.push_bind(self.org.as_str().to_owned());
                self.of_its_state(query);
                outside.conditions(query, self.kind);
                query.push(")");
            }
            query.push(" AS count");
        })
    }

    /// Returns a count with the version that it is counted in: one statement sees one state.
    fn with_version(self, count: impl Fn(&mut QueryBuilder<Postgres>)) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("SELECT found.count, sequence, changed_at FROM (SELECT ");
        count(&mut query);
        query.push(") AS found LEFT JOIN record_changes ON org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        query.push(" AND kind = ").push_bind(self.kind.table);
        query
    }
}
