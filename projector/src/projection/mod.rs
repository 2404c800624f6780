//! The projections: each folds the events of its aggregates into its own tables.

mod accounts;
mod api_keys;
mod blocks;
mod circles;
mod crossings;
mod deliveries;
mod organizations;
mod personal;
mod positions;
mod records;
mod runs;
mod sos_calls;
mod text;
mod totals;
mod webhooks;
mod workflows;

use event_log::{EventLog, VaultError};
use futures::future::{self, BoxFuture};
use schemas::{AggregateType, Log, Recorded};
use sqlx::PgConnection;

pub(crate) use deliveries::{delete_expired as delete_expired_deliveries, delete_expired_attempts};

/// Folds events into rows.
pub(crate) trait Projection: Send + Sync {
    /// Its name, under which its position is stored: it must never change.
    fn name(&self) -> &'static str;

    /// The aggregates whose events it is given; all of one log.
    fn aggregates(&self) -> &'static [AggregateType];

    /// The tables that it alone writes. Rows of `totals` under its name are its own as well.
    fn tables(&self) -> &'static [&'static str];

    /// The indexes of its tables, besides primary keys, that it reads while folding.
    fn folds_by(&self) -> Vec<String> {
        Vec::new()
    }

    /// The column by whose time its rows expire, if the events of its log do.
    fn lives_by(&self) -> Option<&'static str> {
        None
    }

    /// Folds events, in the order of the log, within the transaction of `rows`.
    ///
    /// It must be safe to call again with the same events after that transaction was rolled back.
    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>>;

    /// Does in advance, in short transactions of its own, what would make the transaction of
    /// [`Projection::settle`] long.
    fn prepare<'a>(
        &'a mut self,
        _rows: &'a mut PgConnection,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(future::ready(Ok(())))
    }

    /// Applies to rows that were folded separately what other projections have done to the serving
    /// ones in the meantime, and to other projections' rows what only this one's events say.
    fn settle<'a>(
        &'a mut self,
        _rows: &'a mut PgConnection,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(future::ready(Ok(())))
    }
}

/// The purpose of the rows that a projection writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// They are read.
    Serving,
    /// They will replace those that are read.
    Successor,
    /// They are compared with those that are read, and then dropped.
    Scratch,
}

/// Every projection of a log. Personal data is unsealed by the vault of `event_log`.
pub(crate) fn all(log: Log, event_log: &EventLog, role: Role) -> Vec<Box<dyn Projection>> {
    let event_log = event_log.clone();
    let all: Vec<Box<dyn Projection>> = vec![
        Box::new(organizations::Organizations),
        Box::new(api_keys::ApiKeys),
        Box::new(workflows::Workflows),
        Box::new(runs::Runs::default()),
        Box::new(webhooks::Webhooks),
        Box::new(records::Companies),
        Box::new(records::Deals),
        Box::new(records::Contacts),
        Box::new(records::Orders),
        Box::new(records::Leads),
        Box::new(records::Clients),
        Box::new(accounts::Accounts(event_log.clone(), role)),
        Box::new(circles::Circles(event_log.clone())),
        Box::new(sos_calls::SosCalls),
        Box::new(crossings::Crossings),
        Box::new(positions::Positions(event_log, role)),
        Box::new(deliveries::Deliveries(role)),
    ];
    all.into_iter()
        .filter(|projection| log_of(projection.as_ref()) == log)
        .collect()
}

/// The logs that projections are folded from.
pub(crate) const LOGS: [Log; 3] = [Log::Events, Log::Locations, Log::Deliveries];

/// Returns the projection of a name, with its log.
pub(crate) fn named(
    name: &str,
    event_log: &EventLog,
    role: Role,
) -> Option<(Log, Box<dyn Projection>)> {
    let mut all = LOGS.into_iter().flat_map(|log| {
        let of_log = all(log, event_log, role).into_iter();
        of_log.map(move |projection| (log, projection))
    });
    all.find(|(_, projection)| projection.name() == name)
}

/// The names of all projections.
pub(crate) fn names(event_log: &EventLog) -> Vec<&'static str> {
    let all = LOGS
        .into_iter()
        .flat_map(|log| all(log, event_log, Role::Serving));
    all.map(|projection| projection.name()).collect()
}

fn log_of(projection: &dyn Projection) -> Log {
    let kind = projection.aggregates().first();
    kind.map_or(Log::Events, |kind| kind.log())
}

/// Why events could not be folded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// An event does not fit what came before it.
    #[error("{0}")]
    Refused(String),
    /// The database returned an error or did not respond.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The vault does not answer.
    #[error(transparent)]
    Vault(VaultError),
}

impl ApplyError {
    /// Whether an event is to blame, so that a retry cannot help.
    ///
    /// Everything else (a lost connection, a full disk, a missing table) is for the operator of the
    /// database to fix, and no event is put aside for it.
    pub(crate) fn blames_an_event(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Database(sqlx::Error::Encode(_)) => true,
            Self::Database(sqlx::Error::Database(error)) => error
                .code()
                // Data exceptions, integrity violations, a value beyond the server's limits.
                .is_some_and(|code| {
                    ["22", "23", "54"]
                        .iter()
                        .any(|class| code.starts_with(class))
                }),
            Self::Database(_) | Self::Vault(_) => false,
        }
    }
}

/// A sequence as stored in Postgres.
pub(crate) fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
