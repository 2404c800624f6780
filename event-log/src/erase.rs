//! Erasing: the only way to remove something from the log before its time.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::StreamId;

use crate::read::{Most, Start};
use crate::{EventLog, ReadError};

/// Messages erased concurrently.
const SIDE_BY_SIDE: usize = 16;

impl EventLog {
    /// Erases every event of an aggregate and returns how many there were. The server overwrites
    /// them on its disk and lists their sequences as deleted, so that no reader takes them for a
    /// hole. May be repeated: this removes what an interrupted attempt left.
    ///
    /// # Errors
    /// If the log does not answer; some events may be gone by then.
    pub async fn erase(&self, aggregate: &StreamId) -> Result<u64, ReadError> {
        self.erase_before(aggregate, u64::MAX).await
    }

    /// Erases the events of an aggregate that come before a sequence, as [`Self::erase`] does.
    ///
    /// # Errors
    /// If the log does not answer; some events may be gone by then.
    pub async fn erase_before(
        &self,
        aggregate: &StreamId,
        sequence: u64,
    ) -> Result<u64, ReadError> {
        let log = aggregate.aggregate.log();
        let subject = self.subjects().of(aggregate);
        let reader = self.reader(log);
        let mut erased = 0;
        while let Some(first) = reader.first_after(&subject, 0).await?
            && first.sequence < sequence
        {
            let start = Start::After(first.sequence - 1);
            let found = reader.read(&subject, start, Most::BATCH).await?;
            let found = found.messages.iter();
            let sequences = found.map(|stored| stored.sequence);
            let sequences: Vec<u64> = sequences.filter(|found| *found < sequence).collect();
            self.note_beginning(log, &sequences).await?;
            let sequences = sequences.into_iter();
            let erase = sequences.map(|sequence| self.erase_one(log, sequence));
            let gone: Vec<bool> = stream::iter(erase)
                .buffer_unordered(SIDE_BY_SIDE)
                .try_collect()
                .await?;
            erased += gone.into_iter().filter(|gone| *gone).count() as u64;
        }
        Ok(erased)
    }

    /// Whether this call erased it: another caller may have come first.
    async fn erase_one(&self, log: schemas::Log, sequence: u64) -> Result<bool, ReadError> {
        let stream = &self.streams().get(log).stream;
        match stream.delete_message(sequence).await {
            Ok(deleted) => Ok(deleted),
            Err(error) => match self.reader(log).still_has(sequence).await {
                Ok(false) => Ok(false),
                Ok(true) | Err(_) => Err(ReadError::Unavailable(error.to_string())),
            },
        }
    }
}
