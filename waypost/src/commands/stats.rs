//! `waypost stats`: how much each organization stores.

use std::collections::BTreeMap;
use std::future::ready;

use event_log::{EventLog, Whose};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::{AggregateType, Log, OrgId};
use serde::Serialize;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::print;
use crate::Failure;
use crate::system::{self, LogAccess, organization};

/// The counted kinds, their tables, and the column of the organization that a row belongs to.
const KINDS: [(&str, &str, &str); 12] = [
    ("companies", "companies", "org_id"),
    ("deals", "deals", "org_id"),
    ("contacts", "contacts", "org_id"),
    ("orders", "orders", "org_id"),
    ("leads", "leads", "org_id"),
    ("clients", "clients", "org_id"),
    ("workflows", "workflows", "org_id"),
    ("runs", "runs", "org_id"),
    ("webhooks", "webhooks", "org_id"),
    ("deliveries", "deliveries", "org_id"),
    ("keys", "api_keys", "org_id"),
    ("circles", "circles", "owner_org"),
];

/// Kinds of events, and organizations, that are counted in parallel.
const AT_A_TIME: usize = 8;

/// Print how many events and rows of each kind each organization has, and how many bytes its rows
/// take.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  waypost stats\n  waypost stats --org ORG")]
pub(crate) struct Stats {
    /// Only this organization; by default all.
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    log: LogAccess,
    #[command(flatten)]
    database: DatabaseSettings,
}

#[derive(Serialize)]
struct Output {
    organizations: Vec<OrganizationStats>,
}

/// The numbers of an organization.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OrganizationStats {
    org_id: OrgId,
    /// Events in the log, without positions and delivery attempts.
    events: u64,
    /// For one organization only: counting holds a reader on the server per kind, for a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_by_kind: Option<BTreeMap<&'static str, u64>>,
    rows: BTreeMap<&'static str, i64>,
    /// Bytes of its rows, without their indexes.
    bytes: i64,
    bytes_by_kind: BTreeMap<&'static str, i64>,
}

impl Stats {
    pub(crate) async fn run(self: Box<Self>, common: &CommonSettings) -> Result<(), Failure> {
        let log = self.log.open(common).await?;
        let only = match self.org {
            Some(org) => Some(organization(&log, org).await?),
            None => None,
        };
        let pool = database::connect(&system::database(self.database, common)?)?;
        // One snapshot, for as long as it takes.
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut rows = pool.begin_with(begin).await?;
        rows.execute("SET LOCAL statement_timeout = 0").await?;
        let mut kept = organizations(&mut rows, only.as_ref()).await?;
        for kind in KINDS {
            count_rows(&mut rows, kind, only.as_ref(), &mut kept).await?;
        }
        tracing::info!(organizations = kept.len(), "Counting events");
        let by_kind = only.is_some();
        let organizations = stream::iter(kept.into_values())
            .map(async |kept| {
                if by_kind {
                    count_events_by_kind(&log, kept).await
                } else {
                    count_events(&log, kept).await
                }
            })
            .buffered(AT_A_TIME)
            .try_collect()
            .await?;
        print(&Output { organizations })
    }
}

async fn organizations(
    rows: &mut PgConnection,
    only: Option<&OrgId>,
) -> Result<BTreeMap<String, OrganizationStats>, Failure> {
    let found: Vec<String> = if let Some(org) = only {
        vec![org.as_str().to_owned()]
    } else {
        let all = sqlx::query_scalar("SELECT org_id FROM organizations ORDER BY org_id");
        all.fetch_all(rows).await?
    };
    let found = found.into_iter().map(|org| {
        let kept = OrganizationStats {
            org_id: OrgId::from(org.clone()),
            events: 0,
            events_by_kind: None,
            rows: KINDS.iter().map(|(kind, ..)| (*kind, 0)).collect(),
            bytes: 0,
            bytes_by_kind: KINDS.iter().map(|(kind, ..)| (*kind, 0)).collect(),
        };
        (org, kept)
    });
    Ok(found.collect())
}

/// Counts the rows of a table and their bytes, in one pass.
async fn count_rows(
    rows: &mut PgConnection,
    (kind, table, column): (&'static str, &str, &str),
    only: Option<&OrgId>,
    kept: &mut BTreeMap<String, OrganizationStats>,
) -> Result<(), Failure> {
    tracing::info!(kind, "Counting rows");
    let condition = match only {
        Some(_) => format!("{column} = $1"),
        None => format!("$1::text IS NULL AND {column} IS NOT NULL"),
    };
    let counts: Vec<(String, i64, i64)> = sqlx::query_as(AssertSqlSafe(format!(
        "SELECT {column}, count(*), sum(pg_column_size(held))::bigint
         FROM {table} AS held WHERE {condition} GROUP BY {column}"
    )))
    .bind(only.map(OrgId::as_str))
    .fetch_all(rows)
    .await?;
    for (org, count, bytes) in counts {
        // Rows may outlive the entry of their organization by a moment.
        if let Some(kept) = kept.get_mut(&org) {
            kept.rows.insert(kind, count);
            kept.bytes += bytes;
            kept.bytes_by_kind.insert(kind, bytes);
        }
    }
    Ok(())
}

/// The server counts what a reader would receive, without sending it.
async fn pending(log: &EventLog, org: &OrgId, only: Option<AggregateType>) -> Result<u64, Failure> {
    let whose = Whose::Organization(org, only);
    Ok(log.read_for(Log::Events, whose, 0).await?.pending())
}

async fn count_events(
    log: &EventLog,
    kept: OrganizationStats,
) -> Result<OrganizationStats, Failure> {
    let events = pending(log, &kept.org_id, None).await?;
    Ok(OrganizationStats { events, ..kept })
}

async fn count_events_by_kind(
    log: &EventLog,
    kept: OrganizationStats,
) -> Result<OrganizationStats, Failure> {
    let kinds = AggregateType::ALL.iter().copied();
    let counts = stream::iter(kinds.filter(|kind| kind.log() == Log::Events))
        .map(async |kind| {
            let count = pending(log, &kept.org_id, Some(kind)).await?;
            Ok::<_, Failure>((kind.token(), count))
        })
        .buffered(AT_A_TIME)
        .try_filter(|(_, count)| ready(*count > 0));
    let by_kind: BTreeMap<_, _> = counts.try_collect().await?;
    Ok(OrganizationStats {
        events: by_kind.values().sum(),
        events_by_kind: Some(by_kind),
        ..kept
    })
}
