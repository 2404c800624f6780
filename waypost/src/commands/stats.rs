//! `waypost stats`: what each organization keeps.

use std::collections::BTreeMap;

use event_log::{EventLog, Whose};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::{Log, OrgId};
use serde::Serialize;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::print;
use crate::Failure;
use crate::system::{self, LogAccess, organization};

/// What is counted, its table, and the column of the organization that it belongs to.
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

/// Organizations whose events are counted at a time.
const AT_A_TIME: usize = 8;

/// Print how many events and rows each organization has, and how many bytes its rows take.
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
struct Answer {
    organizations: Vec<Kept>,
}

/// What an organization keeps.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    org_id: OrgId,
    /// In the log, without positions and delivery attempts.
    events: u64,
    rows: BTreeMap<&'static str, i64>,
    /// Of its rows, without their indexes.
    bytes: i64,
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
        let organizations = stream::iter(kept.into_values())
            .map(|kept| count_events(&log, kept))
            .buffered(AT_A_TIME)
            .try_collect()
            .await?;
        print(&Answer { organizations })
    }
}

async fn organizations(
    rows: &mut PgConnection,
    only: Option<&OrgId>,
) -> Result<BTreeMap<String, Kept>, Failure> {
    let found: Vec<String> = if let Some(org) = only {
        vec![org.as_str().to_owned()]
    } else {
        let all = sqlx::query_scalar("SELECT org_id FROM organizations ORDER BY org_id");
        all.fetch_all(rows).await?
    };
    let found = found.into_iter().map(|org| {
        let kept = Kept {
            org_id: OrgId::from(org.clone()),
            events: 0,
            rows: KINDS.iter().map(|(kind, ..)| (*kind, 0)).collect(),
            bytes: 0,
        };
        (org, kept)
    });
    Ok(found.collect())
}

/// Counts the rows of a table and what they take, in one pass.
async fn count_rows(
    rows: &mut PgConnection,
    (kind, table, column): (&'static str, &str, &str),
    only: Option<&OrgId>,
    kept: &mut BTreeMap<String, Kept>,
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
        // Rows may outlive what is known of their organization by a moment.
        if let Some(kept) = kept.get_mut(&org) {
            kept.rows.insert(kind, count);
            kept.bytes += bytes;
        }
    }
    Ok(())
}

/// The server counts what a reader would be given, without giving it.
async fn count_events(log: &EventLog, kept: Kept) -> Result<Kept, Failure> {
    let whose = Whose::Organization(&kept.org_id);
    let events = log.read_for(Log::Events, whose, 0).await?.pending();
    Ok(Kept { events, ..kept })
}
