//! Reading one organization's part of the log, or one kind of aggregate, page by page: no consumer
//! stands behind it, so a reader may take its time between pages and costs the server nothing
//! meanwhile.

use std::sync::Arc;

use async_nats::jetstream::stream::RawMessageErrorKind;
use schemas::{AggregateType, Log, OrgId, Recorded};
use serde_json::json;

use crate::read::{StreamReader, decode};
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

    async fn page_on(
        &self,
        log: Log,
        subject: String,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let query = json!({
            "seq": after.saturating_add(1), "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES,
        });
        let reader = StreamReader::new(self.readers().clone(), self.streams().get(log));
        let found = reader.get_many(&query).await?.messages;
        let through = found.last().map_or(after, |last| last.sequence);
        let complete = found.len() < limit && !self.any_after(log, &subject, through).await?;
        let items = found.iter().map(|stored| match decode(stored) {
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
            complete,
        })
    }

    /// Asks the stream's leader: a copy that lags must not make a reader believe it has seen all.
    async fn any_after(&self, log: Log, subject: &str, after: u64) -> Result<bool, ReadError> {
        let stream = &self.streams().get(log).stream;
        match stream
            .get_first_raw_message_by_subject(subject, after.saturating_add(1))
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }
}
