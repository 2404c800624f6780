//! Reading one organization's part of the log, or one kind of aggregate, page by page: no consumer
//! stands behind it, so a reader may take its time between pages and costs the server nothing
//! meanwhile.

use std::sync::Arc;

use schemas::{AggregateType, Log, OrgId, Recorded, StreamId};

use crate::read::{Most, Start, StreamReader, decode};
use crate::{EventLog, Item, ReadError};

/// About how many bytes of events one page holds; always at least one event.
const PAGE_BYTES: usize = 256 * 1024;

/// Some events of one organization, or of one kind, in order.
#[derive(Debug)]
pub struct Page {
    /// The events; none where nothing more stood in the log.
    pub items: Vec<Item>,
    /// Where to go on from: the sequence of the last of them.
    pub through: u64,
    /// Whether nothing more of theirs stood in the log behind them.
    pub complete: bool,
}

impl Page {
    /// The events among its items that can be read.
    pub fn events(&self) -> impl Iterator<Item = &Recorded> {
        self.items.iter().filter_map(Item::event)
    }
}

impl EventLog {
    /// The events of one organization behind the sequence `after`, at most `limit` (up to 1,000);
    /// only those of one kind of aggregate where `only` names it.
    pub async fn page(
        &self,
        log: Log,
        org: &OrgId,
        only: Option<AggregateType>,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let subject = self.subjects().of_organization(log, org, only);
        self.page_on(log, subject, after, limit).await
    }

    /// The events of one kind of aggregate, whosesoever, behind the sequence `after`, at most
    /// `limit` (up to 1,000).
    pub async fn page_of_kind(
        &self,
        kind: AggregateType,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let subject = self.subjects().of_kind(kind);
        self.page_on(kind.log(), subject, after, limit).await
    }

    /// The last event of each aggregate, as [`EventLog::last_of_each`] finds them, for one who goes
    /// through what pages held.
    pub async fn last_of_each_patiently(
        &self,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        match streams.first() {
            Some(stream) => {
                let reader = self.patient_reader(stream.aggregate.log());
                self.last_of_each_by(&reader, streams).await
            }
            None => Ok(Vec::new()),
        }
    }

    fn patient_reader(&self, log: Log) -> StreamReader {
        StreamReader::new(self.readers().clone(), self.streams().get(log)).patient()
    }

    async fn page_on(
        &self,
        log: Log,
        subject: String,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let reader = self.patient_reader(log);
        let most = Most {
            messages: limit,
            bytes: PAGE_BYTES,
        };
        let found = reader.read(&subject, Start::After(after), most).await?;
        let through = found.messages.last().map_or(after, |last| last.sequence);
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
        })
    }
}
