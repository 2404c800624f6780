//! Forgetting that was started but not finished, because the process died or the log became
//! unavailable: it is resumed from the event that records it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Bucket, Error, EventLog, Position};
use schemas::{AccountId, AggregateType, Context, Event, Log, Recorded};
use tokio_util::sync::CancellationToken;

use super::forget::finish;
use crate::{Commands, Origin};

const BUCKET: &str = "forgetting";
/// Key of the position up to which all forgetting is finished.
const THROUGH: &str = "through";
/// How often unfinished forgetting is searched for.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The process that started forgetting a person has finished by then, or will not.
const UNDER_WAY: TimeDelta = TimeDelta::seconds(10);
/// Events of accounts read at a time.
const PAGE: usize = 1_000;

/// Resumes what was not finished. Several processes may do so at once.
pub struct Unfinished {
    commands: Commands,
    bucket: Bucket,
    /// The sequence up to which there is nothing left.
    through: u64,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Unfinished {
    /// Starts the search, until `shutdown`.
    ///
    /// # Errors
    /// If the bucket cannot be opened.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<(), Error> {
        let bucket = log.bucket(BUCKET, None).await?;
        let unfinished = Self {
            commands: Commands::new(log),
            bucket,
            through: 0,
        };
        tokio::spawn(shutdown.run_until_cancelled_owned(unfinished.look()));
        Ok(())
    }

    async fn look(mut self) {
        loop {
            if let Err(error) = self.carry_on().await {
                tracing::warn!(%error, "Cannot look for people to forget to the end");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn carry_on(&mut self) -> Result<(), Failure> {
        let begun = match self.through {
            0 => self.noted().await?,
            through => through,
        };
        let through = self.go_through(begun).await?;
        if through > begun {
            let through = self.commands.log().position(Log::Events, through);
            let put = self.bucket.put(THROUGH, through.to_string().into());
            put.await?;
        }
        self.through = through;
        Ok(())
    }

    /// The sequence that another process reached; positions mean nothing after a restore.
    async fn noted(&self) -> Result<u64, Failure> {
        let noted = self.bucket.get(THROUGH).await?;
        let position = noted.and_then(|noted| {
            let text = std::str::from_utf8(&noted).ok()?;
            self.commands.log().parse_position(text).ok()
        });
        Ok(position.map_or(0, Position::sequence))
    }

    /// Finishes what was started after a sequence. Returns the sequence up to which nothing is
    /// left.
    async fn go_through(&self, mut after: u64) -> Result<u64, Failure> {
        let (log, mut complete) = (self.commands.log(), false);
        let mut left = None;
        while !complete {
            let kind = AggregateType::Account;
            let page = log.catch_up().page_of_kind(kind, after, PAGE).await?;
            for recorded in page.events() {
                let Event::AccountForgotten(forgotten) = &recorded.event else {
                    continue;
                };
                let before = recorded.sequence - 1;
                if is_under_way(recorded.time, self.commands.now()) {
                    return Ok(left.unwrap_or(before));
                }
                let account = forgotten.account_id;
                if let Err(error) = self.end(recorded, account).await {
                    tracing::warn!(%error, %account, "Cannot forget somebody to the end");
                    left = left.or(Some(before));
                }
            }
            (after, complete) = (page.through, page.complete);
        }
        Ok(left.unwrap_or(after))
    }

    async fn end(&self, begun: &Recorded, account: AccountId) -> Result<(), Failure> {
        let origin = Origin {
            context: Context::caused_by(begun),
            receipt: None,
        };
        let ended = finish(&self.commands, &origin, account).await?;
        tracing::debug!(%account, events = ended.events, "Somebody is forgotten to the end");
        Ok(())
    }
}

/// Whether it was started so recently that the process that started it may still be at it. A clock
/// may have jumped since.
fn is_under_way(begun: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    (now - begun).abs() < UNDER_WAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_a_moment_ago_is_left_to_who_began_it() {
        let now = DateTime::UNIX_EPOCH;
        for (before, under_way) in [
            (0, true),
            (9, true),
            (10, false),
            (-9, true),
            (-3_600, false),
        ] {
            let begun = now - TimeDelta::seconds(before);
            assert_eq!(is_under_way(begun, now), under_way, "{before}");
        }
    }
}
