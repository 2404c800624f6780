//! The way in: checks a commit, hands it to the group and waits for its fate.

use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::group::Group;
use super::wire::Prepared;
use super::{AppendError, Commit};
use crate::streams::LogStream;
use crate::subject::Subjects;

/// Commits that may wait before callers are held up.
const QUEUE: usize = 8_192;

/// A commit on its way, and where its fate is told.
pub(super) struct Pending {
    pub(super) prepared: Prepared,
    pub(super) deadline: Instant,
    reply: oneshot::Sender<Result<u64, AppendError>>,
}

impl Pending {
    /// Tells the caller; one that has gone away is nobody's concern.
    pub(super) fn answer(self, fate: Result<u64, AppendError>) {
        let _ = self.reply.send(fate);
    }
}

/// Appends to one stream of the log.
pub(crate) struct Appender {
    client: Client,
    subjects: Subjects,
    timeout: Duration,
    queue: mpsc::Sender<Pending>,
}

impl Appender {
    pub(crate) fn start(
        client: Client,
        subjects: Subjects,
        stream: &LogStream,
        timeout: Duration,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(Group::new(client.clone(), stream).run(waiting));
        Self {
            client,
            subjects,
            timeout,
            queue,
        }
    }

    /// Appends and answers with the sequence of the commit's last event.
    pub(crate) async fn commit(&self, commit: &Commit) -> Result<u64, AppendError> {
        let prepared = Prepared::new(&self.subjects, commit, self.client.max_payload())?;
        if self.client.connection_state() != State::Connected {
            // Not queued for the time after: a caller who was told "no" must be able to rely on it.
            return Err(AppendError::Unavailable("not connected".to_owned()));
        }
        let deadline = Instant::now() + self.timeout;
        let (reply, fate) = oneshot::channel();
        let pending = Pending {
            prepared,
            deadline,
            reply,
        };
        let overloaded = || AppendError::Unavailable("too many appends are waiting".to_owned());
        match tokio::time::timeout_at(deadline, self.queue.send(pending)).await {
            Ok(Ok(())) => fate.await.unwrap_or_else(|_| Err(overloaded())),
            _ => Err(overloaded()),
        }
    }
}
