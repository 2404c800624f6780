//! Where the events since a time begin.

use chrono::{DateTime, Utc};
use schemas::AggregateType;

use crate::read::{Most, Start};
use crate::{EventLog, ReadError};

const ONE: Most = Most {
    messages: 1,
    ..Most::BATCH
};

impl EventLog {
    /// The sequence of the first event of one kind of aggregate, of any owner, that the log stored
    /// since a time by its own clock; `None` if there is none.
    pub async fn first_of_kind_since(
        &self,
        kind: AggregateType,
        since: DateTime<Utc>,
    ) -> Result<Option<u64>, ReadError> {
        let subject = self.subjects().of_kind(kind);
        let reader = self.reader(kind.log());
        let found = reader.read(&subject, Start::Since(since), ONE).await?;
        Ok(found.messages.first().map(|first| first.sequence))
    }
}
