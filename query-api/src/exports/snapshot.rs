//! Reading all rows of an organization from one consistent snapshot.

use std::time::Duration;

use bytes::BytesMut;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use schemas::OrgId;
use service::Share;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::column::Kind;
use super::error::ExportError;
use super::tuples::{Batch, strip_header};
use super::version::Source;

/// Rows are sent in batches of about this many bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// Batches that may wait to be written. This bounds memory, and neither side waits for long.
const BATCHES_WAITING: usize = 4;

/// A query over the rows of the organization `waypost.org`, checked against the read models and
/// turned into the statement that copies its result out.
///
/// A copy has no parameters, so settings of the transaction replace them. `waypost.since` is the
/// time from which on changes are requested.
macro_rules! snapshot_of {
    ($first:literal $(+ $more:literal)*) => {{
        const _: fn() = || drop(sqlx::query!($first $(+ $more)*));
        concat!("COPY (", $first, $($more,)* ") TO STDOUT (FORMAT binary)")
    }};
}
pub(super) use snapshot_of;

/// Like `snapshot_of!`, for columns of the records written since `waypost.since` and for the ids of
/// deleted ones, oldest change first.
macro_rules! changes_of {
    ($table:literal, $deleted:literal, $columns:literal) => {
        snapshot_of!(
            "SELECT "
                + $columns
                + ", deleted_at
             FROM (SELECT id, updated_at AS at, NULL::timestamptz AS deleted_at FROM "
                + $table
                + "
                   WHERE org_id = current_setting('waypost.org', true)
                     AND updated_at >= current_setting('waypost.since', true)::timestamptz
                   UNION ALL
                   SELECT id, deleted_at, deleted_at FROM "
                + $deleted
                + "
                   WHERE org_id = current_setting('waypost.org', true)
                     AND deleted_at >= current_setting('waypost.since', true)::timestamptz)
                 AS changed
             LEFT JOIN (SELECT * FROM "
                + $table
                + "
                        WHERE org_id = current_setting('waypost.org', true)) AS held USING (id)
             ORDER BY at, id"
        )
    };
}
pub(super) use changes_of;

/// An organization's rows of one kind in a consistent state, newest first.
pub(super) struct Snapshot {
    /// The source of the rows.
    pub(super) source: Source,
    /// The rows. An error is the last item. Without one the rows are complete.
    pub(super) batches: mpsc::Receiver<Result<Batch, ExportError>>,
}

/// Reads a snapshot.
pub(super) struct Reader {
    pub(super) pool: PgPool,
    pub(super) kind: &'static Kind,
    /// The time from which on changes are requested, unless all records are.
    pub(super) since: Option<DateTime<Utc>>,
    /// How long to wait until the next rows are taken.
    pub(super) stall: Duration,
    /// When all rows must have been read.
    pub(super) deadline: Instant,
    /// Held until the last row is read.
    pub(super) _place: Share<OrgId>,
}

type Opened = oneshot::Sender<Result<Source, ExportError>>;

impl Reader {
    /// Starts reading. The server has also started when this returns.
    pub(super) async fn open(self, org: &OrgId) -> Result<Snapshot, ExportError> {
        let (opened, source) = oneshot::channel();
        let (rows, batches) = mpsc::channel(BATCHES_WAITING);
        background::spawn(self.read(org.clone(), opened, rows));
        Ok(Snapshot {
            source: source.await.map_err(|_| ExportError::Abandoned)??,
            batches,
        })
    }

    async fn read(
        self,
        org: OrgId,
        opened: Opened,
        rows: mpsc::Sender<Result<Batch, ExportError>>,
    ) {
        let mut opened = Some(opened);
        let ended = self.copy_from_pool(&org, &mut opened, &rows).await;
        if let Err(error) = ended {
            // If these fail, no receiver is left to notify.
            match opened {
                Some(opened) => drop(opened.send(Err(error))),
                None => drop(rows.send_timeout(Err(error), self.stall).await),
            }
        }
    }

    async fn copy_from_pool(
        &self,
        org: &OrgId,
        opened: &mut Option<Opened>,
        rows: &mpsc::Sender<Result<Batch, ExportError>>,
    ) -> Result<(), ExportError> {
        let mut connection = self.pool.acquire().await?;
        let copied = tokio::select! {
            copied = self.copy(&mut connection, org, opened, rows) => copied,
            // Before the first row nothing else would detect a disconnect.
            () = rows.closed() => Err(ExportError::Abandoned),
            () = sleep_until(self.deadline) => Err(ExportError::Late),
        };
        if copied.is_err() {
            // The next user would first have to read the rest of the copy.
            connection.close_on_drop();
        }
        copied
    }

    async fn copy(
        &self,
        connection: &mut PgConnection,
        org: &OrgId,
        opened: &mut Option<Opened>,
        rows: &mpsc::Sender<Result<Batch, ExportError>>,
    ) -> Result<(), ExportError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = connection.begin_with(begin).await?;
        // Acquired before the snapshot is chosen: otherwise a rebuild could replace these tables in
        // between with ones whose newest rows that snapshot would not contain.
        let tables = self.kind.projection.name();
        let lock = format!("LOCK TABLE organizations, {tables} IN ACCESS SHARE MODE");
        // The server does not detect on its own that no client waits for a query's first row.
        let notice = "SET LOCAL client_connection_check_interval = '500ms'";
        let both = AssertSqlSafe(format!("{lock}; {notice}"));
        transaction.execute(both).await?;
        // Reading everything has no time limit. If rows are not stored in the order of their time,
        // an index scan would read pages in random order. The planner assumes that they are
        // ordered, as it only considers an index's first column.
        sqlx::query!(
            "SELECT set_config('waypost.org', $1, true) AS org,
                    set_config('waypost.since', $2, true) AS since,
                    set_config('statement_timeout', '0', true) AS timeout,
                    set_config('enable_indexscan', CASE WHEN (
                        SELECT abs(correlation) < 0.5 FROM pg_stats
                        WHERE schemaname = current_schema() AND tablename = $3
                          AND attname = 'created_at') THEN 'off' ELSE 'on' END, true) AS walks",
            org.as_str(),
            self.since.unwrap_or_default().to_rfc3339(),
            tables,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let source = Source::read(&mut *transaction, org, tables).await?;

        let mut copy = transaction.copy_out_raw(self.kind.statement).await?;
        if let Some(opened) = opened.take() {
            // If the receiver was dropped, sending the first batch fails.
            let _ = opened.send(Ok(source));
        }
        let mut message = copy.try_next().await?.unwrap_or_default();
        strip_header(&mut message)?;
        let mut batch = BytesMut::from(&message[..]);
        drop(message);
        while let Some(message) = copy.try_next().await? {
            if batch.len() + message.len() > BATCH_BYTES {
                let full = std::mem::replace(&mut batch, BytesMut::with_capacity(BATCH_BYTES));
                self.hand_on(full, rows).await?;
            }
            // One message is one row.
            batch.extend_from_slice(&message);
        }
        self.hand_on(batch, rows).await?;
        drop(copy);
        transaction.commit().await?;
        Ok(())
    }

    async fn hand_on(
        &self,
        batch: BytesMut,
        rows: &mpsc::Sender<Result<Batch, ExportError>>,
    ) -> Result<(), ExportError> {
        let batch = Ok(Batch::new(batch));
        rows.send_timeout(batch, self.stall)
            .await
            .map_err(|error| match error {
                SendTimeoutError::Timeout(_) => ExportError::Stalled,
                SendTimeoutError::Closed(_) => ExportError::Abandoned,
            })
    }
}
