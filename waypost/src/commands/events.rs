//! `waypost events`: the log, for those with access to it.

use std::io::{self, Write as _};
use std::pin::pin;
use std::sync::Arc;

use event_log::EventLog;
use futures::TryStreamExt as _;
use query_api::feed::{self, FeedQuery, Form};
use schemas::Log;
use service::settings::CommonSettings;
use service::{Clock, SystemClock};

use crate::Failure;
use crate::system::{LogAccess, organization};

/// Print the event log, one JSON object per line.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  waypost events --org ORG --types 'run.*,lead.created'\n  waypost events --follow\n  waypost events --locations --follow"
)]
pub(crate) struct Events {
    /// Only this organization's; by default those of all.
    #[arg(long)]
    org: Option<String>,
    /// Only what came after this position; by default from the first event on.
    #[arg(long)]
    after: Option<String>,
    /// Only these types: names or patterns such as run.*, comma-separated.
    #[arg(long, value_delimiter = ',', value_parser = pattern)]
    types: Vec<String>,
    /// Continue with new events until Ctrl-C.
    #[arg(long)]
    follow: bool,
    /// People's positions instead of everything else.
    #[arg(long)]
    locations: bool,
    #[command(flatten)]
    log: LogAccess,
}

impl Events {
    pub(crate) async fn run(self: Box<Self>, common: &CommonSettings) -> Result<(), Failure> {
        let log = self.log.open(common).await?;
        let org = match self.org {
            Some(org) => Some(organization(&log, org).await?),
            None => None,
        };
        let feed = if self.locations {
            Log::Locations
        } else {
            Log::Events
        };
        let query = FeedQuery {
            form: if self.follow {
                Form::ServerSent
            } else {
                Form::Lines
            },
            after: Some(after(&log, feed, self.after.as_deref())?),
            types: self.types,
            limit: None,
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut lines = pin!(feed::lines(&log, &clock, feed, org.as_ref(), query).await?);
        let print = async {
            while let Some(lines) = lines.try_next().await? {
                let mut out = io::stdout().lock();
                out.write_all(&lines)?;
                out.flush()?;
            }
            io::Result::Ok(())
        };
        unless_interrupted(print, tokio::signal::ctrl_c(), self.follow).await
    }
}

/// Prints to the end or until it is interrupted. Only with `follow` is that not a failure: without
/// it, a part of the log would pass for all of it.
async fn unless_interrupted(
    print: impl Future<Output = io::Result<()>>,
    interrupt: impl Future<Output = io::Result<()>>,
    follow: bool,
) -> Result<(), Failure> {
    tokio::select! {
        printed = print => match printed {
            // The reader of the pipe has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => Ok(printed?),
        },
        interrupted = interrupt => match interrupted {
            Ok(()) if !follow => Err("interrupted".into()),
            interrupted => Ok(interrupted?),
        },
    }
}

fn pattern(text: &str) -> Result<String, String> {
    domain::webhook::check_pattern(text).map(|()| text.to_owned())
}

fn after(log: &EventLog, feed: Log, text: Option<&str>) -> Result<u64, Failure> {
    let Some(text) = text else { return Ok(0) };
    let position = log.parse_position(text)?;
    if position.log() == feed {
        Ok(position.sequence())
    } else {
        Err(format!("{text} is a position of the other feed (see --locations)").into())
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn an_interrupt_is_a_failure_unless_the_log_is_followed() {
        let interrupted = async |follow| {
            let ended = unless_interrupted(pending(), ready(Ok(())), follow).await;
            ended.map_err(|error| error.to_string())
        };
        assert_eq!(interrupted(false).await, Err("interrupted".to_owned()));
        assert_eq!(interrupted(true).await, Ok(()));
    }
}
