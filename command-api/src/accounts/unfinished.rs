//! Forgetting that was started but not finished, because the process died or the log became
//! unavailable: it is resumed from the event that records it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Bucket, Error, EventLog, Position};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use schemas::{AccountId, AggregateType, Context, Event, Log, Recorded};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::timeout;
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
/// People who are forgotten to the end at the same time.
const SIDE_BY_SIDE: usize = 8;

/// Resumes what was not finished. Several processes may do so at once.
pub struct Unfinished {
    commands: Commands,
    bucket: Bucket,
    /// The sequence up to which there is nothing left.
    through: u64,
    endings: Endings,
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
            endings: Endings::default(),
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
        self.endings.forget_through(through);
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
    async fn go_through(&mut self, after: u64) -> Result<u64, Failure> {
        let mut left = BTreeSet::new();
        let seen = self.begin(after, &mut left).await?;
        self.endings.give_time(LOOK_EVERY).await;
        left.retain(|begun| !self.endings.finished.contains(begun));
        Ok(left.first().map_or(seen, |first| first - 1))
    }

    /// Begins to finish what was started after a sequence, and adds to `left` what is not finished
    /// yet. Returns the sequence up to which it has looked.
    async fn begin(&mut self, mut after: u64, left: &mut BTreeSet<u64>) -> Result<u64, Failure> {
        let mut complete = false;
        while !complete {
            let (log, kind) = (self.commands.log(), AggregateType::Account);
            let page = log.catch_up().page_of_kind(kind, after, PAGE).await?;
            for recorded in page.events() {
                let Event::AccountForgotten(forgotten) = &recorded.event else {
                    continue;
                };
                let begun = recorded.sequence;
                if is_under_way(recorded.time, self.commands.now()) {
                    return Ok(begun - 1);
                }
                if self.endings.finished.contains(&begun) {
                    continue;
                }
                left.insert(begun);
                if !self.endings.is_running(begun) {
                    let end = end(self.commands.clone(), recorded, forgotten.account_id);
                    self.endings.start(begun, end).await;
                }
            }
            (after, complete) = (page.through, page.complete);
        }
        Ok(after)
    }
}

/// Forgets somebody to the end. Returns whether that is done. Boxed, since it is made of many
/// others.
fn end(commands: Commands, begun: &Recorded, account: AccountId) -> BoxFuture<'static, bool> {
    let origin = Origin {
        context: Context::caused_by(begun),
        receipt: None,
    };
    async move {
        match finish(&commands, &origin, account).await {
            Ok(ended) => {
                let events = ended.events;
                tracing::debug!(%account, events, "Somebody is forgotten to the end");
                true
            }
            Err(error) => {
                tracing::warn!(%error, %account, "Cannot forget somebody to the end");
                false
            }
        }
    }
    .boxed()
}

/// Forgetting that is being finished, by the sequence of the event that records it. Somebody who
/// takes long, or cannot be forgotten, occupies one of a few places and keeps no others waiting.
#[derive(Default)]
struct Endings {
    tasks: JoinSet<bool>,
    running: HashMap<Id, u64>,
    finished: BTreeSet<u64>,
}

impl Endings {
    /// Starts once a place is free.
    async fn start(&mut self, begun: u64, end: impl Future<Output = bool> + Send + 'static) {
        while self.tasks.len() >= SIDE_BY_SIDE {
            self.wait_for_one().await;
        }
        let task = self.tasks.spawn(end).id();
        self.running.insert(task, begun);
    }

    fn is_running(&self, begun: u64) -> bool {
        self.running.values().any(|running| *running == begun)
    }

    /// Waits for all that run, but no longer than this.
    async fn give_time(&mut self, time: Duration) {
        let ended = async {
            while !self.tasks.is_empty() {
                self.wait_for_one().await;
            }
        };
        if timeout(time, ended).await.is_err() {
            tracing::info!(
                running = self.tasks.len(),
                "It takes long to forget some people to the end"
            );
        }
    }

    async fn wait_for_one(&mut self) {
        if let Some(ended) = self.tasks.join_next_with_id().await {
            self.note(ended);
        }
    }

    /// Notes an end. What failed, or panicked, is not finished and will be started again.
    fn note(&mut self, ended: Result<(Id, bool), JoinError>) {
        let (task, is_finished) = match ended {
            Ok(ended) => ended,
            Err(error) => (error.id(), false),
        };
        if let Some(begun) = self.running.remove(&task)
            && is_finished
        {
            self.finished.insert(begun);
        }
    }

    /// Drops what is known of events up to this one, which will not be looked at again.
    fn forget_through(&mut self, through: u64) {
        self.finished = self.finished.split_off(&(through + 1));
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

    #[tokio::test]
    async fn somebody_who_takes_for_ever_keeps_nobody_else_waiting() {
        let mut endings = Endings::default();
        endings.start(1, std::future::pending()).await;
        for begun in 2..=20 {
            endings.start(begun, async { true }).await;
        }
        while endings.tasks.len() > 1 {
            endings.wait_for_one().await;
        }
        let others: BTreeSet<u64> = (2..=20).collect();
        assert_eq!(endings.finished, others);
        assert!(endings.is_running(1));
        endings.forget_through(19);
        assert_eq!(endings.finished, BTreeSet::from([20]));
    }

    #[tokio::test]
    async fn what_failed_is_started_again() {
        let mut endings = Endings::default();
        for is_finished in [false, true] {
            assert!(!endings.is_running(1) && !endings.finished.contains(&1));
            endings.start(1, async move { is_finished }).await;
            assert!(endings.is_running(1));
            endings.wait_for_one().await;
        }
        assert!(endings.finished.contains(&1));
    }
}
