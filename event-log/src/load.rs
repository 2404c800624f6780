//! Reading aggregates.

mod since;

use std::collections::HashMap;

use async_nats::Subject;
use chrono::{DateTime, Utc};
use schemas::{Log, Recorded, StreamId};
use traces::{SpanKind, Traced as _};

use crate::read::{BATCH, Most, ReadTimeout, Start, StreamReader, decode};
use crate::{EventLog, Position, ReadError};

/// What is read at a time of an aggregate that may be of any length.
const PAGE: Most = Most {
    messages: BATCH,
    bytes: 1024 * 1024,
};

/// The size of a log.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Events that have neither expired nor been erased.
    pub events: u64,
    /// Their size on one server's disk, without the server's own indexes.
    pub bytes: u64,
}

impl EventLog {
    /// All events of an aggregate, oldest first.
    pub async fn load(&self, stream: &StreamId) -> Result<Vec<Recorded>, ReadError> {
        let mut events: Vec<Recorded> = Vec::new();
        let take = |page: Vec<Recorded>| events.extend(page);
        let load = self.pages_from(stream, Start::After(0), Most::BATCH, take);
        load.within(&traces::part("log read", SpanKind::Client))
            .await?;
        Ok(events)
    }

    /// Passes all events of an aggregate to `take`, oldest first and a page at a time. However many
    /// they are, no more than a page is held.
    pub async fn all_pages(
        &self,
        stream: &StreamId,
        take: impl FnMut(Vec<Recorded>),
    ) -> Result<(), ReadError> {
        let read = self.pages_from(stream, Start::After(0), PAGE, take);
        read.within(&traces::part("log read", SpanKind::Client))
            .await
    }

    /// Passes the events of an aggregate that the log stored since a time by its own clock to
    /// `take`, as [`EventLog::all_pages`] does.
    pub async fn pages_since(
        &self,
        stream: &StreamId,
        since: DateTime<Utc>,
        take: impl FnMut(Vec<Recorded>),
    ) -> Result<(), ReadError> {
        let read = self.pages_from(stream, Start::Since(since), PAGE, take);
        read.within(&traces::part("log read", SpanKind::Client))
            .await
    }

    /// Passes the events of an aggregate after the sequence `after` to `take`, as
    /// [`EventLog::all_pages`] does.
    pub async fn pages_after(
        &self,
        stream: &StreamId,
        after: u64,
        take: impl FnMut(Vec<Recorded>),
    ) -> Result<(), ReadError> {
        let read = self.pages_from(stream, Start::After(after), PAGE, take);
        read.within(&traces::part("log read", SpanKind::Client))
            .await
    }

    /// An aggregate's first event.
    pub async fn first(&self, stream: &StreamId) -> Result<Option<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let stored = self.reader(stream.aggregate.log()).first(&subject).await?;
        stored.as_ref().map(decode).transpose()
    }

    /// An aggregate's first events, a page of them at most; empty only if it has none.
    pub async fn first_page(&self, stream: &StreamId) -> Result<Vec<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let reader = self.reader(stream.aggregate.log());
        let found = reader.read(&subject, Start::After(0), PAGE).await?;
        found.messages.iter().map(decode).collect()
    }

    async fn pages_from(
        &self,
        stream: &StreamId,
        mut start: Start,
        most: Most,
        mut take: impl FnMut(Vec<Recorded>),
    ) -> Result<(), ReadError> {
        let subject = self.subjects().of(stream);
        let reader = self.reader(stream.aggregate.log());
        loop {
            let found = reader.read(&subject, start, most).await?;
            let page: Result<Vec<Recorded>, ReadError> =
                found.messages.iter().map(decode).collect();
            let page = page?;
            let last = page.last().map(|last| last.sequence);
            take(page);
            match last {
                Some(last) if !found.is_complete => start = Start::After(last),
                _ => return Ok(()),
            }
        }
    }

    /// An aggregate's last event.
    pub async fn last(&self, stream: &StreamId) -> Result<Option<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let reader = self.reader(stream.aggregate.log());
        let read = traces::part("log read", SpanKind::Client);
        let stored = reader.last(&subject).within(&read).await?;
        stored.as_ref().map(decode).transpose()
    }

    /// The last event of each aggregate, in the order asked for; all must be of one stream of the
    /// log. One round trip for each thousand, with the timeout of an append of as many.
    pub async fn last_of_each(
        &self,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        let timeout = ReadTimeout::of(self.settings().timeout_of_each(streams.len()));
        let reader_of = |log| self.reader(log).with(timeout);
        self.last_of_each_by(reader_of, streams).await
    }

    /// The same with a reader of the stream that they are in.
    pub(crate) async fn last_of_each_by(
        &self,
        reader_of: impl FnOnce(Log) -> StreamReader,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        let Some(log) = streams.first().map(|stream| stream.aggregate.log()) else {
            return Ok(Vec::new());
        };
        let reader = reader_of(log);
        let subjects: Vec<Subject> = streams.iter().map(|s| self.subjects().of(s)).collect();
        let mut found = HashMap::with_capacity(subjects.len());
        for stored in reader.last_of_each(&subjects).await? {
            found.insert(stored.subject.to_string(), decode(&stored)?);
        }
        Ok(subjects
            .iter()
            .map(|subject| found.get(subject.as_str()).cloned())
            .collect())
    }

    /// The event at a sequence; `None` if it was deleted or does not exist yet.
    pub async fn get(&self, log: Log, sequence: u64) -> Result<Option<Recorded>, ReadError> {
        let stored = self.reader(log).get(sequence).await?;
        stored.as_ref().map(decode).transpose()
    }

    /// The current position of the last event.
    pub async fn end(&self, log: Log) -> Result<Position, ReadError> {
        let (_, last) = self.bounds(log).await?;
        Ok(self.position(log, last))
    }

    /// The sequence after which everything is still there, and that of the last event, at present.
    /// They are equal if nothing is left.
    pub async fn bounds(&self, log: Log) -> Result<(u64, u64), ReadError> {
        let state = self.reader(log).state().await?;
        let (first, last) = (state.first_sequence, state.last_sequence);
        Ok((first.saturating_sub(1).min(last), last))
    }

    /// The current size of a log.
    pub async fn size(&self, log: Log) -> Result<Size, ReadError> {
        let state = self.reader(log).state().await?;
        Ok(Size {
            events: state.messages,
            bytes: state.bytes,
        })
    }
}
