//! Reading one organization's part of the log, one kind of aggregate or one aggregate, page by page.
//! It needs no consumer, so a reader may take its time between pages and costs the server nothing
//! meanwhile.

use std::sync::Arc;

use async_nats::jetstream::Context;
use schemas::{AggregateType, Log, OrgId, Recorded, StreamId};

use crate::read::{Most, Start, StreamReader, decode};
use crate::{EventLog, Item, Position, ReadError};

/// About how many bytes of events one page holds; always at least one event.
const PAGE_BYTES: usize = 256 * 1024;

/// About how many bytes the headers and the subject of an event take.
const ENVELOPE_BYTES: usize = 512;

/// Some events of one organization, of one kind or of one aggregate, in order.
#[derive(Debug)]
pub struct Page {
    /// The events; empty if the log had no more.
    pub items: Vec<Item>,
    /// Where to continue: the sequence of the last of them.
    pub through: u64,
    /// Whether the log had no more such events after them.
    pub complete: bool,
    /// Their approximate bytes in transit.
    pub bytes: usize,
}

impl Page {
    /// The page of a reader for whom nothing after the sequence `after` can matter.
    pub fn end(after: u64) -> Self {
        Self {
            items: Vec::new(),
            through: after,
            complete: true,
            bytes: 0,
        }
    }

    /// The events among its items that can be read.
    pub fn events(&self) -> impl Iterator<Item = &Recorded> {
        self.items.iter().filter_map(Item::event)
    }
}

/// Reads pages for this program's own work, which must go on however busy the machine is: over the
/// connection by which it follows the log, where no outside reader is in the way.
#[derive(Clone, Copy)]
pub struct CatchUp<'a>(&'a EventLog);

impl EventLog {
    /// The events of one organization after the sequence `after`, at most `limit` (up to 1,000);
    /// only those of one kind of aggregate if `only` names it. For an outside reader.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn page(
        &self,
        log: Log,
        org: &OrgId,
        only: Option<AggregateType>,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let subject = self.subjects().of_organization(log, org, only);
        let reader = self.long_timeout_reader(self.readers(), log);
        page_on(&reader, &subject, after, limit).await
    }

    /// The events of one kind of aggregate, of any owner, after the sequence `after`, at most
    /// `limit` (up to 1,000). For an outside reader.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn page_of_kind(
        &self,
        kind: AggregateType,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let reader = self.long_timeout_reader(self.readers(), kind.log());
        page_on(&reader, &self.subjects().of_kind(kind), after, limit).await
    }

    /// The events of one aggregate after the sequence `after`, at most `limit` (up to 1,000). For
    /// an outside reader.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn page_of(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let reader = self.long_timeout_reader(self.readers(), stream.aggregate.log());
        page_on(&reader, &self.subjects().of(stream), after, limit).await
    }

    /// As [`EventLog::first`]. For an outside reader.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn first_for_reader(&self, stream: &StreamId) -> Result<Option<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let reader = self.long_timeout_reader(self.readers(), stream.aggregate.log());
        let stored = reader.first(&subject).await?;
        stored.as_ref().map(decode).transpose()
    }

    /// As [`EventLog::last_of_each`]. For an outside reader.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn last_of_each_for_reader(
        &self,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        let reader_of = |log| self.long_timeout_reader(self.readers(), log);
        self.last_of_each_by(reader_of, streams).await
    }

    /// As [`EventLog::end`], over the connection that pages for outside readers come by: they hold
    /// everything up to there even if another connection leads to a server with more.
    ///
    /// # Errors
    /// If the log is unavailable, or silent for three seconds.
    pub async fn end_for_reader(&self, log: Log) -> Result<Position, ReadError> {
        let state = self
            .long_timeout_reader(self.readers(), log)
            .state()
            .await?;
        Ok(self.position(log, state.last_sequence))
    }

    /// Reads pages for this program itself.
    pub fn catch_up(&self) -> CatchUp<'_> {
        CatchUp(self)
    }

    fn long_timeout_reader(&self, context: &Context, log: Log) -> StreamReader {
        StreamReader::new(context, self.streams().get(log)).with_long_timeout()
    }
}

impl CatchUp<'_> {
    /// As [`EventLog::page`].
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn page(
        self,
        log: Log,
        org: &OrgId,
        only: Option<AggregateType>,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let subject = self.0.subjects().of_organization(log, org, only);
        self.page_on(log, &subject, after, limit).await
    }

    /// As [`EventLog::page_of_kind`].
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn page_of_kind(
        self,
        kind: AggregateType,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let subject = self.0.subjects().of_kind(kind);
        self.page_on(kind.log(), &subject, after, limit).await
    }

    /// As [`EventLog::last_of_each`].
    ///
    /// # Errors
    /// If the log is unavailable, or silent for half a minute.
    pub async fn last_of_each(
        self,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        let reader_of = |log| self.reader(log);
        self.0.last_of_each_by(reader_of, streams).await
    }

    async fn page_on(
        self,
        log: Log,
        subject: &str,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        // The semaphore is never closed.
        let _turn = self.0.pages().acquire().await;
        page_on(&self.reader(log), subject, after, limit).await
    }

    fn reader(self, log: Log) -> StreamReader {
        self.0.long_timeout_reader(self.0.followers(), log)
    }
}

async fn page_on(
    reader: &StreamReader,
    subject: &str,
    after: u64,
    limit: usize,
) -> Result<Page, ReadError> {
    let most = Most {
        messages: limit,
        bytes: PAGE_BYTES,
    };
    let found = reader.read(subject, Start::After(after), most).await?;
    let through = found.messages.last().map_or(after, |last| last.sequence);
    let bytes = found.messages.iter();
    let bytes = bytes.map(|stored| stored.payload.len() + ENVELOPE_BYTES);
    let items = found.messages.iter().map(|stored| match decode(stored) {
        Ok(event) => Item::Event(Arc::new(event)),
        Err(error) => Item::Undecodable {
            sequence: stored.sequence,
            subject: stored.subject.to_string(),
            reason: error.to_string(),
        },
    });
    Ok(Page {
        items: items.collect(),
        through,
        complete: found.is_complete,
        bytes: bytes.sum(),
    })
}
