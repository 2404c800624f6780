//! `waypost forget`: forgets a person, or erases a business record.

use std::time::Duration;

use command_api::{Commands, Origin, accounts, organizations, records};
use domain::Precondition;
use domain::account::Email;
use domain::record::Kind;
use event_log::{EventLog, Position, ReadError};
use projector::ListError;
use schemas::{OrgId, RecordId, StreamId};
use serde_json::{Value, json};
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};
use sqlx::PgPool;

use super::print;
use crate::Failure;
use crate::system::{self, LogAccess, organization};

/// How long the read models may take to catch up.
const TIMEOUT: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// By then processes that follow the log have seen that a record was deleted.
const SETTLING: Duration = Duration::from_secs(1);

/// Forget a person, or erase a business record. Neither can be undone.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  waypost forget ada@example.com\n  waypost forget --org ORG contacts c-17"
)]
pub(crate) struct Forget {
    /// The person's e-mail address; or the record's kind and id.
    #[arg(required = true, num_args = 1..=2, value_name = "EMAIL | KIND ID")]
    whom: Vec<String>,
    /// The record's organization.
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    log: LogAccess,
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Forget {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let settings = system::database(self.database, common)?;
        let pool = database::connect(&settings)?;
        let commands = Commands::new(self.log.open(common).await?);
        let done = match (self.org, self.whom.as_slice()) {
            (None, [email]) => person(&commands, &pool, email).await?,
            (Some(org), [kind, id]) => {
                let org = organization(commands.log(), org).await?;
                record(&commands, &pool, &org, kind, id).await?
            }
            _ => return Err("name a person by EMAIL, or a record by --org ORG KIND ID".into()),
        };
        print(&done)
    }
}

async fn person(commands: &Commands, pool: &PgPool, email: &str) -> Result<Value, Failure> {
    let (origin, email) = (Origin::default(), Email::parse(email)?);
    let id = accounts::holder(commands, &email).await?;
    let Some(id) = id else {
        return invited(commands, &email).await;
    };
    let rows = projector::rows_about(pool, id).await?;
    let forgotten = accounts::forget(commands, &origin, id).await?;
    projector::drop_what_is_kept_of(pool, id).await?;
    until_gone(async || projector::rows_about(pool, id).await).await?;
    // The rows of runs go by events of their own, after that of the person.
    until_gone(async || runs_behind(commands, pool, forgotten.position).await).await?;
    Ok(json!({ "forgotten": id, "events": forgotten.events, "rows": rows }))
}

/// Counts the projections of runs that have not read the log up to a position: one or none.
async fn runs_behind(
    commands: &Commands,
    pool: &PgPool,
    position: Position,
) -> Result<i64, ListError> {
    let log = commands.log();
    let is_behind = |at: &str| {
        let at = log.parse_position(at);
        at.is_ok_and(|at| at.sequence() < position.sequence())
    };
    let projections = projector::list(log, pool).await?;
    let mut runs = projections.iter().filter(|one| one.name == "runs");
    Ok(i64::from(runs.any(|one| is_behind(&one.position))))
}

/// Forgets a person who was invited to an organization's people and never had an account.
async fn invited(commands: &Commands, email: &Email) -> Result<Value, Failure> {
    let origin = Origin::default();
    match organizations::forget_address(commands, &origin, email).await? {
        0 => Err("no account has this e-mail address".into()),
        _ => Ok(json!({ "forgotten": email.as_str(), "events": 0, "rows": 0 })),
    }
}

async fn record(
    commands: &Commands,
    pool: &PgPool,
    org: &OrgId,
    kind: &str,
    id: &str,
) -> Result<Value, Failure> {
    let known = || format!("unknown kind of record {kind}");
    let kind = Kind::parse(kind).ok_or_else(known)?;
    let stream = StreamId::new(org, kind.aggregate(), id);
    let rows = projector::rows_of_record(pool, kind.name(), &stream).await?;
    let last = commands.log().last(&stream).await?;
    let last = last.ok_or("record not found")?;
    let deletion = if kind.exists(Some(&last.event)) {
        let (origin, id) = (Origin::default(), RecordId::from(id));
        let whatever = Precondition::None;
        let deleted = records::delete(commands, &origin, org, kind, &id, &whatever).await?;
        deleted.position.sequence()
    } else {
        last.sequence
    };
    // Its totals and sums follow the deletion, so that has to be read before it is erased.
    let (log, end) = (commands.log(), deletion + 1);
    let left = async || {
        let left = projector::left_of_record(pool, kind.name(), &stream, deletion).await?;
        // A row that no later event made is that of the record to be forgotten: its deletion was
        // skipped as a dead letter.
        if left > 0 || goes_on_from(log, &stream, end).await? {
            return Ok::<_, Failure>(left);
        }
        Ok(projector::rows_of_record(pool, kind.name(), &stream).await?)
    };
    until_gone(left).await?;
    tokio::time::sleep(SETTLING).await;
    let _away = projector::keep_copies_away(pool, &[kind.name()]).await?;
    projector::drop_dead_letters_before(pool, &stream, end).await?;
    // If it was created again, the marker is gone or that of a later deletion.
    if !goes_on_from(log, &stream, end).await? {
        projector::drop_deletion(pool, kind.name(), &stream).await?;
    }
    let events = log.erase_before(&stream, end).await?;
    if goes_on_from(log, &stream, end).await? {
        let kind = kind.name();
        return Err(format!(
            "{kind} {id} was created again while it was being forgotten: its {events} events up \
             to the deletion are erased, and what came after that is kept. To erase that too, \
             forget it again"
        )
        .into());
    }
    Ok(json!({ "forgotten": id, "events": events, "rows": rows }))
}

/// Whether an aggregate has events at a sequence or after it.
async fn goes_on_from(
    log: &EventLog,
    aggregate: &StreamId,
    sequence: u64,
) -> Result<bool, ReadError> {
    let last = log.last(aggregate).await?;
    Ok(last.is_some_and(|last| last.sequence >= sequence))
}

async fn until_gone<E>(mut left: impl AsyncFnMut() -> Result<i64, E>) -> Result<(), Failure>
where
    Failure: From<E>,
{
    let gone = async {
        while left().await? > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok::<_, E>(())
    };
    let waited = tokio::time::timeout(TIMEOUT, gone).await;
    let late = "the read models did not catch up in time: is the projector running? If it is, \
                rebuild the projection and try again";
    waited.map_err(|_| late)??;
    Ok(())
}
