//! The checkpoints of the runner. They are copied before all else, so that none of them is newer
//! than what a backup holds of the log, and are restored with it. A runner on a restored log does
//! not repeat what was done, or judge it again by what is known today.

use std::path::Path;

use super::BackupError;
use super::files::{Reader, Writer};
use super::manifest::{Section, Source};
use super::record::{Message, Record};
use super::take::with_retries;
use crate::bucket::Bucket;
use crate::{CheckpointBucket, EventLog, Mark, ReadError};

/// The header of a record that carries the mark.
const MARK: &str = "mark";

/// Writes all current checkpoints.
pub(super) async fn copy(log: &EventLog, folder: &Path) -> Result<Section, BackupError> {
    let mut writer = Writer::new(folder, Source::Checkpoints, 0);
    let open = async || {
        let bucket = log.existing_bucket(CheckpointBucket::Runner.name()).await;
        bucket.map_err(|error| unavailable(error.to_string()))
    };
    let Some(bucket) = with_retries(open).await? else {
        return writer.finish();
    };
    let keys = with_retries(async || bucket.keys_of_values().await.map_err(unavailable)).await?;
    for key in keys {
        let ask = async || bucket.get_marked(&key).await.map_err(unavailable);
        if let Some((value, mark)) = with_retries(ask).await? {
            writer.add(&Record::Message(Message {
                sequence: writer.last() + 1,
                time: String::new(),
                subject: key,
                headers: vec![(MARK.to_owned(), mark.to_string())],
                payload: value,
            }))?;
        }
    }
    writer.finish()
}

/// Restores them.
pub(super) async fn put_back(
    bucket: &Bucket,
    folder: &Path,
    section: &Section,
) -> Result<(), BackupError> {
    let mut reader = Reader::new(folder, section);
    while let Some(record) = reader.next()? {
        let Record::Message(message) = record else {
            continue;
        };
        let mark = mark_of(&message);
        let put = bucket.put_marked(&message.subject, message.payload, mark);
        put.await.map_err(|reason| BackupError::Refused {
            stream: CheckpointBucket::Runner.name().to_owned(),
            reason,
        })?;
    }
    Ok(())
}

fn mark_of(message: &Message) -> Mark {
    let mark = message.headers.iter().find(|(name, _)| name == MARK);
    let mark = mark.and_then(|(_, text)| text.parse().ok());
    mark.unwrap_or_default()
}

fn unavailable(reason: String) -> BackupError {
    ReadError::Unavailable(reason).into()
}
