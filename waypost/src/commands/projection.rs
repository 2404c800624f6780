//! `waypost projection`: read models.

use event_log::EventLog;
use projector::{Pace, Progress};
use serde_json::json;
use service::settings::{CommonSettings, DatabaseSettings};
use service::{SystemClock, database, until_signalled};
use sqlx::PgPool;

use super::backup::Bar;
use super::print;
use crate::Failure;
use crate::system::{self, LogAccess};

/// Read models.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Projection {
    /// List the read models with position and lag: `{"projections": [{name, position, lag}]}`.
    List(Access),
    /// Verify a projection: compare its rows with the log while the system runs.
    ///
    /// Prints `{name, differences}`: 0 if every row matches the log, up to the projection's
    /// position. Differences are described on stderr, without personal data, and the exit
    /// status is 1.
    #[command(after_help = "Example:\n  waypost projection verify contacts")]
    Verify(One),
    /// Rebuild projections from the first event while the system runs.
    ///
    /// Reads see the old rows until the new ones replace them all at once. Ctrl-C changes nothing;
    /// started again, it continues where it stopped. While others use the database, it works only
    /// a share of the time. Several are built in one reading of the log, and take over one after
    /// another. Prints `{name, position}`, of several `{"rebuilt": [{name, position}]}`.
    #[command(
        after_help = "Examples:\n  waypost projection rebuild contacts\n  waypost projection \
                      rebuild contacts orders runs\n  waypost projection rebuild contacts \
                      --share 50"
    )]
    Rebuild(Named),
    /// List dead letters (events that could not be applied) and skipped ones:
    /// `{"deadLetters": […], "skipped": […]}`; or retry or skip one.
    #[command(
        after_help = "Examples:\n  waypost projection dead-letters\n  waypost projection \
                      dead-letters --retry contacts:1207"
    )]
    DeadLetters(DeadLetters),
}

/// How the log and the read models are reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    #[command(flatten)]
    log: LogAccess,
    #[command(flatten)]
    database: DatabaseSettings,
}

/// How fast to work.
#[derive(Debug, clap::Args)]
pub(crate) struct PaceArgs {
    /// Most events applied in one transaction.
    #[arg(
        id = "projector_batch",
        env = "WAYPOST_PROJECTOR_BATCH",
        long,
        hide = true,
        default_value_t = projector::BATCH
    )]
    batch: usize,
    /// While others use the database, work this share of the time, in percent. The higher it is,
    /// the more their reads feel it; 100 never rests.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = projector::SHARE,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    share: u32,
}

impl From<PaceArgs> for Pace {
    fn from(PaceArgs { batch, share }: PaceArgs) -> Self {
        Self { batch, share }
    }
}

/// A projection, and how to connect to the system.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The projection, as `waypost projection list` names it.
    name: String,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    access: Access,
}

/// Projections, and how to connect to the system.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The projections, as `waypost projection list` names them.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    access: Access,
}

/// Events that could not be applied.
#[derive(Debug, clap::Args)]
pub(crate) struct DeadLetters {
    /// Retry a dead letter, then the events that wait for it; prints `{id, applied, waiting}`.
    #[arg(long, value_name = "ID", conflicts_with = "skip")]
    retry: Option<String>,
    /// Skip a dead letter for good, and apply the events that wait for it; prints `{id, applied,
    /// waiting}`. Rebuilding and verifying leave it out as well.
    #[arg(long, value_name = "ID")]
    skip: Option<String>,
    #[command(flatten)]
    access: Access,
}

impl Access {
    async fn open(self, common: &CommonSettings) -> Result<(EventLog, PgPool), Failure> {
        let settings = system::database(self.database, common)?;
        let pool = database::connect(&settings)?;
        Ok((self.log.open(common).await?, pool))
    }
}

impl Projection {
    /// Whether it reads the whole log, and nothing waits for it: while a rebuild takes over, the
    /// active projector waits.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Self::Verify(_))
    }

    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        match self {
            Self::List(access) => {
                let (log, pool) = access.open(common).await?;
                print(&json!({ "projections": projector::list(&log, &pool).await? }))
            }
            Self::Verify(one) => verify(one, common).await,
            Self::Rebuild(named) => rebuild(named, common).await,
            Self::DeadLetters(letters) => letters.run(common).await,
        }
    }
}

impl DeadLetters {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let (retry, skip) = (self.retry, self.skip);
        if retry.is_none() && skip.is_none() {
            let settings = system::database(self.access.database, common)?;
            let pool = database::connect(&settings)?;
            let letters = projector::dead_letters(&pool).await?;
            let skipped = projector::skipped_events(&pool).await?;
            return print(&json!({ "deadLetters": letters, "skipped": skipped }));
        }
        let (log, pool) = self.access.open(common).await?;
        let repaired = match (retry, skip) {
            (Some(id), _) => projector::retry_letter(&log, &pool, &id).await?,
            (None, id) => projector::skip_letter(&log, &pool, &id.unwrap_or_default()).await?,
        };
        print(&repaired)?;
        match repaired.reason {
            Some(reason) => Err(format!("{} still waiting: {reason}", repaired.waiting).into()),
            None => Ok(()),
        }
    }
}

async fn rebuild(named: Named, common: &CommonSettings) -> Result<(), Failure> {
    let stop = until_signalled()?;
    let (log, pool) = named.access.open(common).await?;
    let names: Vec<_> = named.names.iter().map(String::as_str).collect();
    let bar = Bar::new();
    let tell = |progress: Progress| bar.at(progress.doing, progress.done, progress.of);
    let pace = named.pace.into();
    let rebuilt = projector::rebuild(&log, &pool, &names, pace, &tell, &stop).await;
    bar.end();
    match &rebuilt?[..] {
        [one] => print(one),
        several => print(&json!({ "rebuilt": several })),
    }
}

async fn verify(one: One, common: &CommonSettings) -> Result<(), Failure> {
    let stop = until_signalled()?;
    let (log, pool) = one.access.open(common).await?;
    let bar = Bar::new();
    let tell = |progress: Progress| bar.at(progress.doing, progress.done, progress.of);
    let (clock, name, pace) = (&SystemClock, &one.name, one.pace.into());
    let verified = projector::verify(&log, &pool, clock, name, pace, &tell, &stop).await;
    bar.end();
    let verified = verified?;
    for difference in &verified.reported {
        eprintln!("{difference}");
    }
    print(&verified)?;
    match verified.differences {
        0 => Ok(()),
        differing => Err(format!(
            "{} differs from the log in {differing} rows at {}",
            verified.name, verified.position
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Commands {
        #[command(subcommand)]
        projection: Projection,
    }

    fn pace(line: &[&str]) -> Result<Pace, clap::Error> {
        let line = ["waypost"].iter().chain(line);
        Ok(match Commands::try_parse_from(line)?.projection {
            Projection::Rebuild(named) => named.pace.into(),
            Projection::Verify(one) => one.pace.into(),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn rebuilding_and_verifying_obey_the_projectors_batch_and_their_share() {
        for work in ["rebuild", "verify"] {
            let given = [work, "contacts", "--projector_batch", "7", "--share", "50"];
            let expected = Pace {
                batch: 7,
                share: 50,
            };
            assert_eq!(pace(&given).unwrap(), expected);
            assert_eq!(pace(&[work, "contacts"]).unwrap(), Pace::default());
        }
    }

    #[test]
    fn no_share_and_more_than_all_are_refused() {
        for share in ["0", "101", "-1", "half"] {
            pace(&["rebuild", "contacts", "--share", share]).unwrap_err();
        }
    }
}
