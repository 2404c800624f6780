//! Totals per step, grouped by the value of a field: status, plan, source or city.

use std::collections::HashMap;

use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::span::Pieces;
use crate::paging::{Parameters, wrong};

/// Maximum number of groups of all steps together.
const MAX_GROUPS: usize = 10_000;

/// The field that a series is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupBy {
    /// Of orders and leads.
    Status,
    /// Of orders.
    Plan,
    /// Of leads.
    Source,
    /// Of clients.
    City,
}

impl GroupBy {
    const ALL: [Self; 4] = [Self::Status, Self::Plan, Self::Source, Self::City];

    /// The field that a request groups by, if any.
    pub(super) fn from_parameters(parameters: &Parameters) -> Result<Option<Self>, HttpError> {
        let Some(word) = parameters.one("groupBy")? else {
            return Ok(None);
        };
        let asked = Self::ALL.into_iter().find(|field| field.column() == word);
        asked
            .map(Some)
            .ok_or_else(|| wrong("groupBy", "must be status, plan, source or city"))
    }

    fn column(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Plan => "plan",
            Self::Source => "source",
            Self::City => "city",
        }
    }
}

/// Totals of a step for one value.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    /// Its first 100 characters. `None` for records without a value.
    value: Option<String>,
    /// In minor units, of ACTIVE and COMPLETED orders.
    revenue: i128,
    orders: i64,
    leads: i64,
    clients: i64,
}

/// Returns the groups of each non-empty step by the step's place: by value, last the one without.
pub(super) async fn find_groups(
    org: &OrgId,
    pieces: &Pieces,
    field: GroupBy,
    models: &PgPool,
) -> Result<HashMap<i64, Vec<Group>>, HttpError> {
    let found = sqlx::query!(
        r#"SELECT place AS "place!", nullif(value, '') AS value,
                  trunc(sum(revenue))::text AS "revenue!",
                  coalesce(sum(count) FILTER (WHERE kind = 'orders'), 0)::bigint AS "orders!",
                  coalesce(sum(count) FILTER (WHERE kind = 'leads'), 0)::bigint AS "leads!",
                  coalesce(sum(count) FILTER (WHERE kind = 'clients'), 0)::bigint AS "clients!"
           FROM unnest($2::bigint[], $3::smallint[], $4::timestamptz[], $5::timestamptz[])
                    AS piece (place, minutes, begins, ends)
           CROSS JOIN LATERAL (
               SELECT kind, value, count, revenue FROM values_by_time
               WHERE org_id = $1 AND field = $6 AND minutes = piece.minutes
                 AND begins >= piece.begins AND begins < piece.ends) AS held
           GROUP BY place, value ORDER BY place, value = '', value LIMIT $7"#,
        org.as_str(),
        &pieces.places,
        &pieces.minutes,
        &pieces.begins,
        &pieces.ends,
        field.column(),
        i64::try_from(MAX_GROUPS + 1).unwrap_or(i64::MAX),
    )
    .fetch_all(models)
    .await?;
    if found.len() > MAX_GROUPS {
        let reason = format!(
            "the series would have more than {MAX_GROUPS} groups; ask for fewer days, or by week or month"
        );
        return Err(wrong("groupBy", &reason));
    }
    let mut groups: HashMap<i64, Vec<Group>> = HashMap::new();
    for row in found {
        groups.entry(row.place).or_default().push(Group {
            value: row.value,
            revenue: row.revenue.parse().map_err(HttpError::internal)?,
            orders: row.orders,
            leads: row.leads,
            clients: row.clients,
        });
    }
    Ok(groups)
}
