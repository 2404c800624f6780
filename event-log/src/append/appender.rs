//! The entry point: a commit that is nearly alone is sent alone and at once, one among many joins
//! the group.

use std::time::Duration;

use async_nats::jetstream::Context;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::group::{Group, Pending};
use super::load::Load;
use super::sender::{Sender, Verdict, is_late};
use super::wire::Prepared;
use super::{AppendError, Commit};
use crate::connection;
use crate::streams::LogStream;
use crate::subject::Subjects;
use crate::throttle::Throttle;

/// Commits that may be queued for the group.
const QUEUE: usize = 1_024;

/// Appends to one stream of the log.
pub(crate) struct Appender {
    sender: Sender,
    subjects: Subjects,
    load: Load,
    queue: mpsc::Sender<Pending>,
}

impl Appender {
    pub(crate) fn start(
        context: &Context,
        subjects: Subjects,
        stream: &LogStream,
        throttle: Throttle,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let load = Load::new(throttle);
        let sender = Sender::new(context, stream, load.clone());
        tokio::spawn(Group::new(sender.clone(), load.clone()).run(waiting));
        Self {
            sender,
            subjects,
            load,
            queue,
        }
    }

    /// Appends a commit and returns the sequence of its last event, within a timeout. A caller that
    /// gives up meanwhile does no harm: its events are appended all or none.
    pub(crate) async fn commit(
        &self,
        commit: Commit,
        timeout: Duration,
    ) -> Result<u64, AppendError> {
        let client = self.sender.client();
        let prepared = Prepared::new(&self.subjects, commit, client.max_payload())?;
        // The commit is not kept to be sent later: a caller that is refused here can rely on it.
        connection::check(client).map_err(AppendError::Unavailable)?;
        let deadline = Instant::now() + timeout;
        let on_its_way = {
            let is_single = prepared.len() == 1;
            self.load
                .enter(prepared.party, is_single, prepared.weight())
        };
        let fate = async {
            if on_its_way.is_alone {
                self.alone(prepared, deadline).await
            } else {
                self.together(prepared, deadline).await
            }
        };
        let late = || AppendError::Unavailable("no answer in time".to_owned());
        timeout_at(deadline, fate)
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn alone(&self, mut prepared: Prepared, deadline: Instant) -> Result<u64, AppendError> {
        loop {
            let mut verdicts = self.sender.attempt(&mut [&mut prepared], deadline).await;
            match verdicts.pop() {
                Some(Verdict::Settled(fate)) => return fate,
                Some(Verdict::Again { reason, .. }) if is_late(deadline) => return Err(reason),
                _ => {}
            }
        }
    }

    async fn together(&self, prepared: Prepared, deadline: Instant) -> Result<u64, AppendError> {
        let (reply, fate) = oneshot::channel();
        let pending = Pending::new(prepared, deadline, reply);
        let dropped = || AppendError::Unavailable("the append was dropped".to_owned());
        self.queue.send(pending).await.map_err(|_| dropped())?;
        fate.await.unwrap_or_else(|_| Err(dropped()))
    }
}
