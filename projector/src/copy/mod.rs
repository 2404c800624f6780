//! A projection folded once more, into separate tables beside the serving ones.

pub(crate) mod idle;
pub(crate) mod layout;
mod log_retries;

use event_log::{EventLog, Item};
use futures::future::try_join_all;
use schemas::Log;
use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

use self::layout::{Kept, Layout};
pub(crate) use self::log_retries::LogRetries;
use crate::batch::{Group, Member};
use crate::bulk_throttle::{BulkThrottle, Pace};
use crate::checkpoint;
use crate::connect;
use crate::error::RepairError;
use crate::projection::{self, Projection, Role};
use crate::replay::Replay;
use crate::retry::retry;
use crate::skips;

/// Marks the locks of processes that fill a copy among the database's advisory locks.
const LOCKS: i32 = 0x7761_7971;
/// Prefix of the schemas of copies that are to take over.
pub(crate) const REBUILD: &str = "rebuild_";
/// Prefix of the schemas of copies that are only compared.
pub(crate) const VERIFY: &str = "verify_";

/// The progress of work on a projection.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done.
    pub doing: &'static str,
    /// The sequence of the log that it has reached.
    pub done: u64,
    /// The sequence at which it will end.
    pub of: u64,
}

/// A callback that shows the progress.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// A projection's copy, locked against other processes that would fill it.
pub(crate) struct Copy {
    pub(crate) layout: Layout,
    pub(crate) session: PgConnection,
    pub(crate) fold: Fold,
}

/// The folding of the log into a copy.
pub(crate) struct Fold {
    pub(crate) log: Log,
    pub(crate) group: Group,
    role: Role,
    event_log: EventLog,
    pub(crate) pace: Pace,
}

impl Copy {
    /// Continues a copy that was begun, or begins one.
    pub(crate) async fn open(
        event_log: &EventLog,
        pool: &PgPool,
        name: &str,
        role: Role,
        pace: Pace,
    ) -> Result<Self, RepairError> {
        let (log, projection) = named(name, event_log, role)?;
        let (prefix, kept) = match role {
            Role::Scratch => (VERIFY, Kept::No),
            Role::Serving | Role::Successor => (REBUILD, Kept::Yes),
        };
        let layout = Layout {
            schema: format!("{prefix}{name}"),
            serving: serving(pool).await?,
            name: projection.name(),
            tables: projection.tables(),
            indexes: projection.folds_by(),
        };
        let mut session = connect::copier(pool, &layout.schema, &layout.serving).await?;
        if !try_lock(&mut session, &layout.schema).await? {
            return Err(RepairError::UnderWay(layout.schema));
        }
        let epoch = epoch(event_log, log).await?;
        if kept == Kept::No || !layout.is_begun(&mut session, epoch).await? {
            layout.begin(&mut session, log, epoch, kept).await?;
        }
        let mut fold = Fold {
            log,
            group: load(&mut session, log, projection).await?,
            role,
            event_log: event_log.clone(),
            pace,
        };
        fold.retry(&mut session).await?;
        Ok(Self {
            layout,
            session,
            fold,
        })
    }

    /// Reloads the state from the database, after a transaction was rolled back.
    pub(crate) async fn reload(&mut self) -> Result<(), RepairError> {
        let fold = &mut self.fold;
        let (log, projection) = named(self.layout.name, &fold.event_log, fold.role)?;
        fold.group = load(&mut self.session, log, projection).await?;
        Ok(())
    }

    /// Stops all work on the copy, and drops it.
    pub(crate) async fn abandon(self, pool: &PgPool) -> Result<(), RepairError> {
        let Self {
            layout, session, ..
        } = self;
        // The server ends what it still does for the session once that is gone.
        drop(session);
        idle::drop_left(pool, &layout.schema).await
    }
}

impl Fold {
    /// Folds the log up to `to`, which the log has already reached, without a rest: others wait for
    /// the transaction.
    pub(crate) async fn advance(
        &mut self,
        rows: &mut PgConnection,
        to: u64,
        tell: Tell<'_>,
    ) -> Result<(), RepairError> {
        advance_together(&mut [(self, rows)], to, None, tell).await
    }

    /// Writes the items of a batch that are new to the copy and concern it.
    async fn write(
        &mut self,
        rows: &mut PgConnection,
        items: &[Item],
        reached: u64,
        is_last: bool,
    ) -> Result<(), RepairError> {
        let group = &mut self.group;
        let new = items.partition_point(|item| item.sequence() <= group.position);
        let new = &items[new..];
        // If no item concerns it, the position may as well move later.
        if reached > group.position && (is_last || group.wants(new)) {
            group.write(rows, &self.event_log, new, reached).await?;
        }
        Ok(())
    }

    /// Loads the events skipped since the copy was begun, and applies to the rows what other
    /// projections have done to the serving ones.
    pub(crate) async fn settle(&mut self, rows: &mut PgConnection) -> Result<(), RepairError> {
        let epoch = i64::from(self.group.epoch);
        for member in &mut self.group.members {
            let name = member.projection.name();
            member.skipped = skips::of(&mut *rows, name, epoch).await?;
        }
        self.retry(rows).await?;
        for member in &mut self.group.members {
            member.projection.settle(rows).await?;
        }
        Ok(())
    }

    /// Does in advance what would make [`Fold::settle`] take long; nothing of it has to be undone if
    /// the copy never takes over.
    pub(crate) async fn prepare(&mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        for member in &mut self.group.members {
            member.projection.prepare(rows).await?;
        }
        Ok(())
    }

    /// Retries dead letters, as a projector that becomes active does.
    async fn retry(&mut self, rows: &mut PgConnection) -> Result<(), RepairError> {
        for member in &mut self.group.members {
            retry(member, rows, &self.event_log, self.log).await?;
        }
        Ok(())
    }
}

/// Folds one log up to `to` into several copies, each in its own session: the most expensive part,
/// reading it, is done once for all of them, and the server writes them in parallel. With a
/// `throttle` it rests between batches.
pub(crate) async fn advance_together(
    copies: &mut [(&mut Fold, &mut PgConnection)],
    to: u64,
    mut throttle: Option<&mut BulkThrottle>,
    tell: Tell<'_>,
) -> Result<(), RepairError> {
    let folds = copies.iter().map(|(fold, _)| &**fold);
    let Some(last) = folds.min_by_key(|fold| fold.group.position) else {
        return Ok(());
    };
    let (log, feed, batch) = (last.event_log.clone(), last.log, last.pace.batch);
    let members = copies.iter().flat_map(|(fold, _)| &fold.group.members);
    let kinds = members.flat_map(|member| member.projection.aggregates());
    let kinds: Vec<_> = kinds.copied().collect();
    let mut replay = Replay::open(&log, feed, last.group.position, to, batch, &kinds).await?;
    while let Some((items, reached)) = replay.next().await? {
        let (began, count) = (Instant::now(), copies.len());
        let writes = copies
            .iter_mut()
            .map(|(fold, rows)| fold.write(rows, &items, reached, reached == to));
        try_join_all(writes).await?;
        tell(Progress {
            doing: "reading the log",
            done: reached,
            of: to,
        });
        // After the last batch there is no one to yield to.
        if let (Some(throttle), Some((_, session))) = (&mut throttle, copies.first_mut())
            && reached < to
        {
            throttle.rest(session, began, count).await?;
        }
    }
    Ok(())
}

async fn epoch(event_log: &EventLog, log: Log) -> Result<u32, RepairError> {
    let mut retries = LogRetries::begin();
    loop {
        match event_log.end(log).await.map_err(RepairError::from) {
            Ok(end) => return Ok(end.epoch()),
            Err(error) if retries.allows(&error).await => {}
            Err(error) => return Err(error),
        }
    }
}

fn named(
    name: &str,
    event_log: &EventLog,
    role: Role,
) -> Result<(Log, Box<dyn Projection>), RepairError> {
    let found = projection::named(name, event_log, role);
    found.ok_or_else(|| {
        let known = projection::names(event_log).join(", ");
        RepairError::Unknown(name.to_owned(), known)
    })
}

/// Loads the state of the copy from the database.
async fn load(
    rows: &mut PgConnection,
    log: Log,
    projection: Box<dyn Projection>,
) -> Result<Group, RepairError> {
    let checkpoints = checkpoint::all(&mut *rows).await?;
    let name = projection.name();
    let known = checkpoints.iter().find(|one| one.name == name);
    let known = known.ok_or(sqlx::Error::RowNotFound)?;
    Ok(Group {
        log,
        epoch: u32::try_from(known.epoch).unwrap_or_default(),
        position: known.sequence,
        members: vec![Member::load(rows, projection, known).await?],
        notifies_readers: false,
    })
}

/// The schema of the serving tables.
async fn serving(pool: &PgPool) -> Result<String, sqlx::Error> {
    let schema = sqlx::query_scalar!(r#"SELECT current_schema()::text AS "schema!""#);
    schema.fetch_one(pool).await
}

/// Keeps others from filling the copy in a schema, for as long as the session lives.
pub(crate) async fn try_lock(
    session: &mut PgConnection,
    schema: &str,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock($1, hashtext($2)) AS "locked!""#,
        LOCKS,
        schema,
    )
    .fetch_one(session)
    .await
}
