//! Taking a backup while the system runs.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use schemas::Log;
use tokio::time::{Instant, sleep};

use super::files::{Writer, file_error};
use super::manifest::{Manifest, Source};
use super::record::{Message, Record};
use super::{BackupError, Counter, Tell, checkpoints};
use crate::deleted::Deleted;
use crate::read::{Most, Start, Stored, StreamReader};
use crate::streams::LogStream;
use crate::{EventLog, ReadError};

/// Messages read at once, and their approximate bytes.
const PAGE: usize = 1_000;
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How long the server may be unavailable, or one of its replicas may lag.
const TIMEOUT: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(250);

/// The sealed records of the master keys, each with the name it is stored under.
type MasterKeyRecords = Vec<(String, Vec<u8>)>;

/// A stream to read, and where to stop.
struct Plan {
    source: Source,
    stream: LogStream,
    /// Matches all subjects that are read.
    filter: String,
    /// Prefix of every subject, which names the installation.
    prefix: String,
    end: u64,
}

impl EventLog {
    /// Writes the current content of the log into a new or empty folder, which becomes a backup
    /// with the last step, dated `now`. The log may be written to meanwhile.
    pub async fn back_up(
        &self,
        folder: &Path,
        now: DateTime<Utc>,
        tell: Tell<'_>,
    ) -> Result<Manifest, BackupError> {
        // The future is large; the caller's should not be.
        Box::pin(self.take_backup(folder, now, tell)).await
    }

    async fn take_backup(
        &self,
        folder: &Path,
        now: DateTime<Utc>,
        tell: Tell<'_>,
    ) -> Result<Manifest, BackupError> {
        let taken_at = now.to_rfc3339_opts(SecondsFormat::Millis, true);
        make_folder(folder)?;
        // Before the ends are read: no checkpoint may be newer than these.
        let checkpoints = checkpoints::copy(self, folder).await?;
        let plans = with_retries(async || self.plans().await).await?;
        let [events, locations, deliveries, keys] = plans.each_ref().map(|plan| plan.end);
        let ends = [events, locations, deliveries, keys, checkpoints.last];
        let mut counter = Counter::over(ends, tell);
        let mut sections = Vec::with_capacity(Source::ALL.len());
        let mut records = MasterKeyRecords::new();
        for mut plan in plans {
            let mut writer = Writer::new(folder, plan.source, plan.stream.epoch);
            if plan.source == Source::Keys {
                // Read last: everything that was sealed in the events has its key by then.
                records = self.copy_keys(&mut plan, &mut writer, &mut counter).await?;
            } else {
                self.copy(&plan, &mut writer, &mut counter).await?;
            }
            sections.push(writer.finish()?);
        }
        counter.reached(Source::Checkpoints, checkpoints.last);
        sections.push(checkpoints);
        let manifest = Manifest::new(taken_at, self.keyring(), sections, &records);
        manifest.write(folder)?;
        Ok(manifest)
    }

    /// The ends are taken from the effects to their causes, so that no delivery attempt is kept
    /// without its event: another event could take that one's sequence after a restore.
    async fn plans(&self) -> Result<[Plan; 4], BackupError> {
        let deliveries = self.plan(Log::Deliveries).await?;
        let locations = self.plan(Log::Locations).await?;
        let events = self.plan(Log::Events).await?;
        let mut keys = self.keys_plan();
        keys.end = self.keys_end(&keys).await?;
        Ok([events, locations, deliveries, keys])
    }

    async fn plan(&self, log: Log) -> Result<Plan, BackupError> {
        let stream = self.streams().get(log).clone();
        Ok(Plan {
            source: Source::of(log),
            end: self.end(log).await?.sequence(),
            stream,
            filter: self.subjects().all(log),
            prefix: self.settings().log_prefix.clone(),
        })
    }

    fn keys_plan(&self) -> Plan {
        let bucket = self.vault().bucket();
        Plan {
            source: Source::Keys,
            stream: self.keys_stream(),
            filter: format!("{}>", bucket.prefix),
            prefix: bucket.prefix.clone(),
            end: 0,
        }
    }

    async fn keys_end(&self, plan: &Plan) -> Result<u64, BackupError> {
        let info = plan.stream.stream.get_info().await;
        let info = info.map_err(|error| ReadError::Unavailable(error.to_string()))?;
        Ok(info.state.last_sequence)
    }

    /// Copies the keys until there is nothing new: a key that is rewrapped meanwhile moves to the
    /// end. Returns the records of master keys that are among what was copied: a restore trusts
    /// these, and a key whose record came later would open nothing of it.
    async fn copy_keys(
        &self,
        plan: &mut Plan,
        writer: &mut Writer,
        counter: &mut Counter<'_>,
    ) -> Result<MasterKeyRecords, BackupError> {
        loop {
            // Before the end: if that has not moved, they were copied.
            let records = with_retries(async || self.records().await).await?;
            let end = with_retries(async || self.keys_end(plan).await).await?;
            if end == plan.end && writer.last() == end {
                return Ok(records);
            }
            plan.end = end;
            self.copy(plan, writer, counter).await?;
        }
    }

    async fn records(&self) -> Result<MasterKeyRecords, BackupError> {
        let records = self.rotation().sealed_records().await;
        Ok(records.map_err(|error| ReadError::Unavailable(error.to_string()))?)
    }

    /// Copies a stream up to the plan's end.
    async fn copy(
        &self,
        plan: &Plan,
        writer: &mut Writer,
        counter: &mut Counter<'_>,
    ) -> Result<(), BackupError> {
        let reader = StreamReader::new(self.context(), &plan.stream);
        let (mut deleted, mut since) = (Deleted::default(), Instant::now());
        while writer.last() < plan.end {
            let before = writer.last();
            let step = self.step(plan, &reader, &mut deleted, writer).await;
            counter.reached(plan.source, writer.last());
            match step {
                Ok(()) => since = Instant::now(),
                Err(error) if !passes(&error) || since.elapsed() > TIMEOUT => return Err(error),
                Err(_) if writer.last() > before => {}
                Err(_) => sleep(AGAIN).await,
            }
        }
        Ok(())
    }

    /// Copies a page.
    async fn step(
        &self,
        plan: &Plan,
        reader: &StreamReader,
        deleted: &mut Deleted,
        writer: &mut Writer,
    ) -> Result<(), BackupError> {
        let most = Most {
            messages: PAGE,
            bytes: PAGE_BYTES,
        };
        let start = Start::After(writer.last());
        let found = reader.read(&plan.filter, start, most).await?;
        let found = found.messages.into_iter();
        let mut found = found.take_while(|stored| stored.sequence <= plan.end);
        let Some(first) = found.next() else {
            return self.pass(plan, plan.end + 1, deleted, writer).await;
        };
        for stored in std::iter::once(first).chain(found) {
            self.pass(plan, stored.sequence, deleted, writer).await?;
            writer.add(&Record::Message(message(plan, stored)))?;
        }
        Ok(())
    }

    /// Records what is missing before `next`, if the log accounts for it.
    async fn pass(
        &self,
        plan: &Plan,
        next: u64,
        deleted: &mut Deleted,
        writer: &mut Writer,
    ) -> Result<(), BackupError> {
        let from = writer.last() + 1;
        if from >= next {
            return Ok(());
        }
        let to = next - 1;
        // A bucket keeps the last value of a key, so gaps are normal there.
        if plan.source != Source::Keys && !deleted.explain(from, next) {
            let asked = Deleted::ask(self.client(), &plan.stream).await;
            *deleted = asked.map_err(ReadError::Unavailable)?;
            if !deleted.explain(from, next) {
                let stream = plan.source.name();
                return Err(BackupError::Hole { stream, from, to });
            }
        }
        writer.add(&Record::Gap { from, to })
    }
}

/// Retries while the server is unavailable.
pub(super) async fn with_retries<T>(
    mut ask: impl AsyncFnMut() -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    let since = Instant::now();
    loop {
        match ask().await {
            Err(error) if passes(&error) && since.elapsed() < TIMEOUT => sleep(AGAIN).await,
            answer => return answer,
        }
    }
}

/// A lagging replica of the stream has holes for a moment.
fn passes(error: &BackupError) -> bool {
    match error {
        BackupError::Read(error) => error.passes(),
        BackupError::Hole { .. } => true,
        _ => false,
    }
}

fn message(plan: &Plan, stored: Stored) -> Message {
    let subject = stored.subject.as_str();
    let subject = subject.strip_prefix(&plan.prefix).unwrap_or(subject);
    let subject = subject.to_owned();
    Message::of(stored, subject)
}

/// Only the operator may read what is kept there.
fn make_folder(folder: &Path) -> Result<(), BackupError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(file_error(folder))?;
    let mut entries = fs::read_dir(folder).map_err(file_error(folder))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(BackupError::NotEmpty(folder.to_owned())),
    }
}
