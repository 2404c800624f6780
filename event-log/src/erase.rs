//! Erasing: the one way in which something leaves the log before its time.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::StreamId;
use serde_json::json;

use crate::{EventLog, ReadError};

/// Sequences looked up at once.
const BATCH: usize = 1_000;
/// Messages that are erased side by side.
const SIDE_BY_SIDE: usize = 16;

impl EventLog {
    /// Erases every event of an aggregate and answers how many there were. The server overwrites
    /// them on its disk and lists their sequences as deleted, so that no reader takes them for a
    /// hole. May be repeated: what was left by an attempt that broke off goes then.
    ///
    /// # Errors
    /// Where the log does not answer; some events may be gone by then.
    pub async fn erase(&self, aggregate: &StreamId) -> Result<u64, ReadError> {
        let log = aggregate.aggregate.log();
        let subject = self.subjects().of(aggregate);
        let reader = self.reader(log);
        let mut erased = 0;
        while let Some(first) = reader.first_after(&subject, 0).await? {
            let query = json!({
                "seq": first.sequence, "next_by_subj": subject.as_str(), "batch": BATCH,
            });
            let found = reader.get_many(&query).await?.messages;
            // A copy that lags may not know yet what its leader has just named.
            let mut sequences: Vec<u64> = found.iter().map(|stored| stored.sequence).collect();
            if sequences.is_empty() {
                sequences.push(first.sequence);
            }
            let erase = sequences
                .into_iter()
                .map(|sequence| self.erase_one(log, sequence));
            let gone: Vec<bool> = stream::iter(erase)
                .buffer_unordered(SIDE_BY_SIDE)
                .try_collect()
                .await?;
            erased += gone.into_iter().filter(|gone| *gone).count() as u64;
        }
        Ok(erased)
    }

    /// Whether it was this call that erased it: somebody else may have come first.
    async fn erase_one(&self, log: schemas::Log, sequence: u64) -> Result<bool, ReadError> {
        let stream = &self.streams().get(log).stream;
        match stream.delete_message(sequence).await {
            Ok(deleted) => Ok(deleted),
            Err(error) => match self.get(log, sequence).await {
                Ok(None) => Ok(false),
                Ok(Some(_)) | Err(_) => Err(ReadError::Unavailable(error.to_string())),
            },
        }
    }
}
