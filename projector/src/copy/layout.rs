//! The tables of a copy: the layout of the serving ones, in a schema of their own.

use schemas::Log;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

use crate::checkpoint::{self, Checkpoint};
use crate::error::RepairError;

/// Tables that every copy has besides the projection's own.
const SHARED: [&str; 7] = [
    "projection_checkpoints",
    "totals",
    "field_totals",
    "values_by_time",
    "list_blocks",
    "dead_letters",
    "record_changes",
];

/// Whether a copy outlives a crash of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    No,
}

/// The schema of a copy, and what it is a copy of.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The copy's schema.
    pub(crate) schema: String,
    /// The schema of the serving tables.
    pub(crate) serving: String,
    pub(crate) name: &'static str,
    pub(crate) tables: &'static [&'static str],
    /// The indexes of these tables that folding needs.
    pub(crate) indexes: Vec<String>,
}

/// Runs SQL whose names come from this program or the database itself.
pub(crate) async fn run(rows: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    rows.execute(AssertSqlSafe(sql)).await.map(drop)
}

impl Layout {
    /// Whether a copy that was begun earlier, in the same way, can be continued.
    pub(crate) async fn is_begun(
        &self,
        rows: &mut PgConnection,
        epoch: u32,
    ) -> Result<bool, sqlx::Error> {
        let mark: Option<String> = sqlx::query_scalar(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1",
        )
        .bind(&self.schema)
        .fetch_optional(&mut *rows)
        .await?
        .flatten();
        Ok(mark == Some(self.mark(rows, epoch).await?))
    }

    /// Creates an empty copy, in place of an existing one.
    pub(crate) async fn begin(
        &self,
        rows: &mut PgConnection,
        log: Log,
        epoch: u32,
        kept: Kept,
    ) -> Result<(), sqlx::Error> {
        let Self { schema, name, .. } = self;
        let mark = self.mark(rows, epoch).await?;
        let mut transaction = rows.begin().await?;
        self.drop(&mut transaction).await?;
        run(&mut transaction, format!("CREATE SCHEMA {schema}")).await?;
        for table in SHARED.iter().chain(self.tables) {
            self.make_table(&mut transaction, table, kept).await?;
        }
        for table in self.tables {
            let folding = self.missing(&mut transaction, table).await?;
            let folding = folding
                .into_iter()
                .filter(|one| self.indexes.contains(&one.0));
            for (_, index) in folding {
                run(&mut transaction, index).await?;
            }
        }
        checkpoint::ensure(&mut transaction, log, epoch, &[name]).await?;
        let comment = format!("COMMENT ON SCHEMA {schema} IS '{mark}'");
        run(&mut transaction, comment).await?;
        transaction.commit().await
    }

    /// Returns the checkpoint of the serving rows, if `locked` with a lock against moving them.
    pub(crate) async fn checkpoint(
        &self,
        rows: &mut PgConnection,
        locked: bool,
    ) -> Result<Checkpoint, RepairError> {
        let lock = if locked { "FOR UPDATE" } else { "" };
        let query = format!(
            "SELECT log, epoch, sequence, event_id, generation FROM {}.projection_checkpoints
             WHERE name = $1 {lock}",
            self.serving
        );
        let found: Option<(String, i64, i64, Option<Uuid>, i64)> =
            sqlx::query_as(AssertSqlSafe(query))
                .bind(self.name)
                .fetch_optional(rows)
                .await?;
        let missing = || RepairError::Unfit(format!("{} has not been begun yet", self.name));
        let (log, epoch, sequence, event_id, generation) = found.ok_or_else(missing)?;
        Ok(Checkpoint {
            name: self.name.to_owned(),
            log,
            epoch,
            sequence: u64::try_from(sequence).unwrap_or_default(),
            event_id,
            generation,
        })
    }

    /// Drops the copy.
    pub(crate) async fn drop(&self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        run(
            rows,
            format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema),
        )
        .await
    }

    /// Creates a table with its primary key. Other indexes are cheaper to build once the rows are
    /// there, unless folding needs them.
    async fn make_table(
        &self,
        rows: &mut PgConnection,
        table: &str,
        kept: Kept,
    ) -> Result<(), sqlx::Error> {
        let Self {
            schema, serving, ..
        } = self;
        let unlogged = match kept {
            Kept::Yes => "",
            Kept::No => "UNLOGGED",
        };
        let make = format!(
            "CREATE {unlogged} TABLE {schema}.{table} (LIKE {serving}.{table} INCLUDING ALL
             EXCLUDING INDEXES)"
        );
        run(rows, make).await?;
        let set: Vec<String> = sqlx::query_scalar(
            "SELECT format('SET (%s)', array_to_string(reloptions, ', ')) FROM pg_class
             WHERE oid = $1::regclass AND reloptions IS NOT NULL
             UNION ALL
             SELECT format('ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid))
             FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'",
        )
        .bind(format!("{serving}.{table}"))
        .fetch_all(&mut *rows)
        .await?;
        // Nothing must hold the tables when they take over.
        let alone = "SET (autovacuum_enabled = off)".to_owned();
        for change in set.into_iter().chain([alone]) {
            run(rows, format!("ALTER TABLE {schema}.{table} {change}")).await?;
        }
        Ok(())
    }

    /// Builds the indexes that the serving tables have and the copy's lack, and updates the
    /// planner's statistics of these.
    pub(crate) async fn finish(&self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        for table in self.tables {
            for (_, index) in self.missing(rows, table).await? {
                run(rows, index).await?;
            }
            run(rows, format!("ANALYZE {}.{table}", self.schema)).await?;
        }
        Ok(())
    }

    /// Returns the names and definitions of the indexes that a serving table has and the copy's
    /// lacks.
    async fn missing(
        &self,
        rows: &mut PgConnection,
        table: &str,
    ) -> Result<Vec<(String, String)>, sqlx::Error> {
        sqlx::query_as(
            "SELECT indexname::text,
                    replace(indexdef, format(' ON %I.%I ', $1::text, tablename),
                                      format(' ON %I.%I ', $2::text, tablename))
             FROM pg_indexes AS wanted WHERE schemaname = $1::text AND tablename = $3
               AND NOT EXISTS (SELECT FROM pg_indexes AS made
                               WHERE made.schemaname = $2::text
                                 AND made.indexname = wanted.indexname)",
        )
        .bind(&self.serving)
        .bind(&self.schema)
        .bind(table)
        .fetch_all(rows)
        .await
    }

    /// Replaces the serving tables with those of the copy, within a transaction. They must be
    /// locked.
    pub(crate) async fn replace(&self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        let Self {
            schema,
            serving,
            name,
            ..
        } = self;
        for table in self.tables {
            run(rows, format!("DROP TABLE {serving}.{table}")).await?;
            let moved = format!("ALTER TABLE {schema}.{table} SET SCHEMA {serving}");
            run(rows, moved).await?;
            let cleaned = format!("ALTER TABLE {serving}.{table} RESET (autovacuum_enabled)");
            run(rows, cleaned).await?;
        }
        for (table, owner) in [
            ("totals", "kind"),
            ("field_totals", "kind"),
            ("values_by_time", "kind"),
            ("list_blocks", "kind"),
            ("dead_letters", "projection"),
        ] {
            let gone = format!("DELETE FROM {serving}.{table} WHERE {owner} = '{name}'");
            run(rows, gone).await?;
            let moved = format!("INSERT INTO {serving}.{table} SELECT * FROM {schema}.{table}");
            run(rows, moved).await?;
        }
        // The copy's changes have the time of the copy, not that at which the serving rows changed.
        let changed = format!(
            "UPDATE {serving}.record_changes SET changed_at = changed_at + interval '1 second'
             WHERE kind = '{name}'"
        );
        run(rows, changed).await?;
        self.drop(rows).await
    }

    /// Locks everyone out of the serving tables, if that succeeds within the lock timeout.
    pub(crate) async fn lock(&self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        let tables = self.tables.iter();
        let tables: Vec<_> = tables
            .map(|one| format!("{}.{one}", self.serving))
            .collect();
        let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
        run(rows, lock).await
    }

    /// What must be the same for a copy to be continued: the log's epoch, the tables' columns, and
    /// this very program, since another one may fold events differently.
    async fn mark(&self, rows: &mut PgConnection, epoch: u32) -> Result<String, sqlx::Error> {
        let columns: Option<String> = sqlx::query_scalar(
            "SELECT md5(string_agg(format('%s.%s %s', relname, attname,
                                          format_type(atttypid, atttypmod)),
                                   ',' ORDER BY relname, attnum))
             FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
             WHERE attnum > 0 AND NOT attisdropped
               AND relnamespace = $1::regnamespace AND relname = ANY($2)",
        )
        .bind(&self.serving)
        .bind(self.tables)
        .fetch_one(rows)
        .await?;
        let columns = columns.unwrap_or_default();
        Ok(format!("{epoch} {} {columns}", program()))
    }
}

/// Identifies the running build of this program.
fn program() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let of = file.ok().and_then(|file| {
        let at = file.modified().ok()?;
        let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(format!("{}-{}", file.len(), at.as_millis()))
    });
    of.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned())
}
