//! Restoring a backup into an empty system.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use schemas::{Event, Log};

use super::files::Reader;
use super::fill::{self, Filler};
use super::manifest::{Manifest, Section, Source};
use super::record::{Message, Record};
use super::{BackupError, Counter, Tell, checkpoints, verify};
use crate::log::bucket;
use crate::streams::{self, EPOCH, RESTORED_FROM, RESTORING};
use crate::subject::Subjects;
use crate::vault::keys_stream;
use crate::{CheckpointBucket, Keyring, LogSettings, Position, connection, envelope};

const LOGS: [Log; 3] = [Log::Events, Log::Locations, Log::Deliveries];
/// How long the server may take to create or remove a stream.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// The backup's manifest.
    pub manifest: Manifest,
    /// Keys of persons who were forgotten while the backup was taken; they are not restored.
    pub keys_left_out: u64,
    /// The last position of the stream of events, in its new epoch.
    pub position: Position,
}

/// Checks a whole backup and restores it into an empty system: every message at the sequence it
/// had, in streams of a new epoch, and the checkpoints that go with them in place of those of the
/// log that was there before.
///
/// An interrupted restore leaves a log that cannot be opened, and may be repeated.
///
/// # Errors
/// If the backup is not whole, another master key is in use, or the system is not empty or is
/// running.
pub async fn restore(
    folder: &Path,
    settings: &LogSettings,
    keyring: &Keyring,
    tell: Tell<'_>,
) -> Result<Restored, BackupError> {
    Manifest::of(folder, keyring)?;
    let manifest = verify(folder, tell)?;
    let keyring = manifest.keyring(keyring)?;
    let place = Destination::open(settings, &keyring).await?;
    place.clear().await?;
    let epoch = place.fill(folder, &manifest, tell).await?;
    let last = manifest.section(Source::Events).last;
    Ok(Restored {
        position: Position::new(Log::Events, epoch.number, last),
        keys_left_out: epoch.keys_left_out,
        manifest,
    })
}

/// The result of filling.
struct Filled {
    number: u32,
    keys_left_out: u64,
}

/// The system that a backup is restored into.
struct Destination<'s> {
    client: Client,
    context: Context,
    subjects: Subjects,
    settings: &'s LogSettings,
}

impl<'s> Destination<'s> {
    async fn open(settings: &'s LogSettings, keyring: &Keyring) -> Result<Self, BackupError> {
        let client = connection::open(settings.nats_url()).await?;
        streams::check_server(&client)?;
        streams::check_prefix(&settings.log_prefix)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(TIMEOUT);
        Ok(Self {
            client,
            context,
            subjects: Subjects::new(&settings.log_prefix, keyring.clone()),
            settings,
        })
    }

    /// Removes empty streams and the remains of an earlier restore.
    async fn clear(&self) -> Result<(), BackupError> {
        let mut found = Vec::new();
        for config in LOGS
            .map(|log| self.config(log))
            .into_iter()
            .chain([self.keys()])
        {
            found.extend(self.get(&config.name).await?);
        }
        let broken_off = found.iter().any(is_marked);
        for stream in &found {
            let info = stream.cached_info();
            let name = || info.config.name.clone();
            if info.state.consumer_count > 0 {
                return Err(BackupError::InUse { stream: name() });
            }
            if info.state.last_sequence > 0 && !broken_off {
                return Err(BackupError::Occupied { stream: name() });
            }
        }
        // The stream that marks an interrupted restore goes last.
        for stream in found.iter().rev() {
            self.remove(&stream.cached_info().config.name).await?;
        }
        for bucket in CheckpointBucket::ALL.map(CheckpointBucket::name) {
            let name = format!("KV_{}{bucket}", self.settings.log_prefix);
            if self.get(&name).await?.is_some() {
                self.remove(&name).await?;
            }
        }
        Ok(())
    }

    async fn fill(
        &self,
        folder: &Path,
        manifest: &Manifest,
        tell: Tell<'_>,
    ) -> Result<Filled, BackupError> {
        let mut counter = Counter::new(manifest, tell);
        let mut forgotten = HashSet::new();
        // Created first and marked: nobody can open the log before it is whole.
        let mut made = Vec::new();
        for log in LOGS {
            let source = Source::of(log);
            let section = manifest.section(source);
            made.push(
                self.make(log, section, first_kept(folder, section)?)
                    .await?,
            );
        }
        for (log, stream) in LOGS.into_iter().zip(&made) {
            let section = manifest.section(Source::of(log));
            let mut reader = Reader::new(folder, section);
            let config = &stream.cached_info().config;
            let before = config.first_sequence.unwrap_or(1).saturating_sub(1);
            let (client, all) = (self.client.clone(), self.subjects.all(log));
            let prefix = &self.settings.log_prefix;
            let mut filler = Filler::new(client, stream.clone(), prefix, &all, before);
            while let Some(record) = reader.next()? {
                forgotten.extend(forgotten_by(&record));
                filler.add(&record).await?;
                counter.reached(section.name, record.last());
            }
            filler.flush().await?;
            check(stream, section).await?;
        }
        let section = manifest.section(Source::Keys);
        let keys_left_out = self.keys_back(folder, section, &forgotten).await?;
        counter.reached(Source::Keys, section.last);
        let section = manifest.section(Source::Checkpoints);
        self.checkpoints_back(folder, section).await?;
        counter.reached(Source::Checkpoints, section.last);
        let mut number = 0;
        for stream in made.iter().rev() {
            // The stream of events is the last to be unmarked, and the first to be opened.
            number = self.unmark(stream).await?;
        }
        Ok(Filled {
            number,
            keys_left_out,
        })
    }

    async fn keys_back(
        &self,
        folder: &Path,
        section: &Section,
        forgotten: &HashSet<String>,
    ) -> Result<u64, BackupError> {
        let bucket = self.keys();
        let created = self.context.create_stream(bucket.clone()).await;
        created.map_err(|error| refused(&bucket.name, &error))?;
        let prefix = bucket.subjects[0].trim_end_matches('>');
        let (mut left_out, mut reader) = (0, Reader::new(folder, section));
        while let Some(record) = reader.next()? {
            let Record::Message(message) = record else {
                continue;
            };
            if forgotten.contains(&message.subject) {
                left_out += 1;
            } else {
                fill::put_key(&self.client, &bucket.name, prefix, &message).await?;
            }
        }
        Ok(left_out)
    }

    async fn checkpoints_back(&self, folder: &Path, section: &Section) -> Result<(), BackupError> {
        let name = CheckpointBucket::Runner.name();
        let bucket = bucket(&self.context, self.settings, name, None).await?;
        checkpoints::put_back(&bucket, folder, section).await
    }

    /// Creates a stream that begins at the first message that is left.
    async fn make(&self, log: Log, section: &Section, first: u64) -> Result<Stream, BackupError> {
        let mut config = self.config(log);
        // A new epoch: what came after the backup's end is gone, and readers that saw it must
        // notice.
        let mut epoch = streams::new_epoch()?;
        while epoch == streams::epoch_text(section.epoch) {
            epoch = streams::new_epoch()?;
        }
        config.metadata.insert(EPOCH.to_owned(), epoch);
        let before = streams::epoch_text(section.epoch);
        config.metadata.insert(RESTORED_FROM.to_owned(), before);
        let since = RESTORING.to_owned();
        config.metadata.insert(since, "unfinished".to_owned());
        config.first_sequence = (first > 1).then_some(first);
        let name = config.name.clone();
        let created = self.context.create_stream(config).await;
        created.map_err(|error| refused(&name, &error))
    }

    /// Marks it as whole and returns its epoch.
    async fn unmark(&self, stream: &Stream) -> Result<u32, BackupError> {
        let mut config = stream.cached_info().config.clone();
        config.metadata.remove(RESTORING);
        let updated = self.context.update_stream(&config).await;
        updated.map_err(|error| refused(&config.name, &error))?;
        Ok(streams::epoch_of(&config, EPOCH).unwrap_or_default())
    }

    async fn get(&self, name: &str) -> Result<Option<Stream>, BackupError> {
        match self.context.get_stream(name).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if streams::is_missing(&error) => Ok(None),
            Err(error) => Err(refused(name, &error)),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), BackupError> {
        let removed = self.context.delete_stream(name).await;
        removed.map(|_| ()).map_err(|error| refused(name, &error))
    }

    fn config(&self, log: Log) -> Config {
        streams::wanted(self.settings, &self.subjects, log)
    }

    fn keys(&self) -> Config {
        keys_stream(self.settings)
    }
}

fn is_marked(stream: &Stream) -> bool {
    let config = &stream.cached_info().config;
    config.metadata.contains_key(RESTORING)
}

/// The sequence at which the stream must begin: nothing before it is left.
fn first_kept(folder: &Path, section: &Section) -> Result<u64, BackupError> {
    match Reader::new(folder, section).next()? {
        Some(Record::Gap { to, .. }) => Ok(to + 1),
        Some(Record::Message(_)) | None => Ok(1),
    }
}

/// Checks that the server has exactly what the backup holds.
async fn check(stream: &Stream, section: &Section) -> Result<(), BackupError> {
    let name = &stream.cached_info().config.name;
    let info = stream.get_info().await;
    let state = info.map_err(|error| refused(name, &error))?.state;
    if (state.messages, state.last_sequence) == (section.messages, section.last) {
        return Ok(());
    }
    Err(BackupError::Refused {
        stream: name.clone(),
        reason: format!(
            "the server has {} messages up to {}, the backup {} up to {}",
            state.messages, state.last_sequence, section.messages, section.last
        ),
    })
}

/// The key name of a person whom this event forgets. The event is written before the key is
/// destroyed, so a backup may hold both.
fn forgotten_by(record: &Record) -> Option<String> {
    let Record::Message(message) = record else {
        return None;
    };
    let is = |(name, value): &(String, String)| {
        name == "ce-type" && value.starts_with("account.forgotten.")
    };
    if !message.headers.iter().any(is) {
        return None;
    }
    account_of(message).map(|account| format!("account.{account}"))
}

fn account_of(message: &Message) -> Option<String> {
    let headers = message.header_map();
    let event = envelope::decode(
        &message.subject,
        message.sequence,
        &headers,
        &message.payload,
    );
    match event.ok()?.event {
        Event::AccountForgotten(forgotten) => Some(forgotten.account_id.to_string()),
        _ => None,
    }
}

fn refused(stream: &str, error: &dyn std::error::Error) -> BackupError {
    BackupError::Refused {
        stream: stream.to_owned(),
        reason: error.to_string(),
    }
}
