//! How a tail begins.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt as _;
use schemas::{AggregateType, Log};
use tokio::time::Instant;

use super::past::Past;
use super::source::Fault;
use super::{BACKOFF, Tail};
use crate::deleted::Deleted;
use crate::mark::Mark;
use crate::way::{Way, Whose};
use crate::{EventLog, ReadError};

impl EventLog {
    /// Follows a stream of the log after the sequence `after` (0: from the first event); only the
    /// events of some kinds of aggregate if `only` names any.
    pub async fn tail(
        &self,
        log: Log,
        after: u64,
        only: &[AggregateType],
    ) -> Result<Tail, ReadError> {
        let filters = only.iter().map(|kind| self.subjects().of_kind(*kind));
        let filters = filters.collect();
        if only.len() < 2 {
            return self.tail_on(log, after, filters).await;
        }
        let past = Past::open(self, log, after, only).await?;
        if past.is_over() {
            return self.tail_on(log, past.end.max(after), filters).await;
        }
        let (way, after) = (Way::of_this_program(self), Mark::at(after));
        let mut tail = Tail::behind(self, way, log, filters, after);
        tail.pending = past.pending();
        tail.past = Some(past);
        Ok(tail)
    }

    /// A tail of a whole stream that asks the server only once something is awaited.
    pub(crate) fn tail_later(&self, log: Log, after: Mark) -> Tail {
        let way = Way::of_this_program(self);
        Tail::behind(self, way, log, Vec::new(), after)
    }

    /// Follows a stream of the log for an outside reader, after `after`: over the connection of
    /// such readers, and little ahead of what is taken.
    pub async fn read_for(
        &self,
        log: Log,
        whose: Whose<'_>,
        after: u64,
    ) -> Result<Tail, ReadError> {
        let subjects = self.subjects();
        let filters = match whose {
            Whose::All => Vec::new(),
            Whose::Kind(kind) => vec![subjects.of_kind(kind)],
            Whose::Organization(org, only) => vec![subjects.of_organization(log, org, only)],
            Whose::Aggregates(some) => {
                let some = some.iter();
                some.map(|one| subjects.of(one).to_string()).collect()
            }
        };
        self.tail_by(Way::of_readers(self), log, after, filters)
            .await
    }

    pub(super) async fn tail_on(
        &self,
        log: Log,
        after: u64,
        filters: Vec<String>,
    ) -> Result<Tail, ReadError> {
        self.tail_by(Way::of_this_program(self), log, after, filters)
            .await
    }

    async fn tail_by(
        &self,
        way: Way,
        log: Log,
        after: u64,
        filters: Vec<String>,
    ) -> Result<Tail, ReadError> {
        let mut tail = Tail::behind(self, way, log, filters, Mark::at(after));
        let opened = tail.opening().boxed().await;
        tail.opened(opened.map_err(|fault| match fault {
            Fault::Server(reason) => ReadError::Unavailable(reason),
            Fault::Log(error) => ReadError::Unavailable(error.to_string()),
        })?);
        Ok(tail)
    }
}

impl Tail {
    /// How much waits after `after` is not known yet; at least one event is assumed.
    fn behind(log: &EventLog, way: Way, feed: Log, filters: Vec<String>, after: Mark) -> Self {
        Self {
            way,
            stream: log.streams().get(feed).clone(),
            shared: Arc::clone(log.followed(feed)),
            filters,
            past: None,
            last: after,
            pending: 1,
            end: 0,
            is_sure: false,
            source: None,
            opening: None,
            asking: None,
            looking: None,
            heard: Instant::now(),
            lacking: None,
            ready: VecDeque::new(),
            deleted: Deleted::default(),
            backoff: BACKOFF,
        }
    }
}
