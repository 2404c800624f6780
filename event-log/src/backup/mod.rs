//! Backups of the log: a folder of files that holds every message, every owner's wrapped key and
//! the runner's checkpoints, with a hash chain over all of it.
//!
//! The master key is not in the backup: without it nothing that was sealed can be read, and
//! [`restore`] refuses.

mod chain;
mod checkpoints;
mod error;
mod files;
mod fill;
mod manifest;
mod record;
mod restore;
mod take;

use std::path::Path;

pub use error::{BackupError, Wrong};
pub use manifest::Manifest;
pub use restore::{Restored, restore};

use files::Reader;
use manifest::Source;

/// Progress: sequences of the log that are done, and all of them.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The stream that is being read or written.
    pub stream: &'static str,
    /// Sequences of all streams that are done.
    pub done: u64,
    /// Sequences of all streams.
    pub of: u64,
}

/// Reports progress; called often.
pub type Tell<'t> = &'t (dyn Fn(Progress) + Sync);

/// Checks that a backup is what was written: nothing lost, changed, duplicated or moved.
///
/// # Errors
/// Names the first place that is wrong.
pub fn verify(folder: &Path, tell: Tell<'_>) -> Result<Manifest, BackupError> {
    let manifest = Manifest::read(folder)?;
    let mut counter = Counter::new(&manifest, tell);
    for source in Source::ALL {
        let section = manifest.section(source);
        let (mut messages, mut reader) = (0, Reader::new(folder, section));
        while let Some(record) = reader.next()? {
            messages += u64::from(matches!(record, record::Record::Message(_)));
            counter.reached(source, record.last());
        }
        if messages != section.messages {
            let (stream, said) = (source.name(), section.messages);
            let reason = format!("it says {said} messages of {stream}, and there are {messages}");
            return Err(BackupError::Manifest { reason });
        }
    }
    Ok(manifest)
}

/// Sums the sequences of the streams.
struct Counter<'t> {
    tell: Tell<'t>,
    ends: [u64; Source::ALL.len()],
    told: u64,
}

impl<'t> Counter<'t> {
    /// Sequences between two reports.
    const STEP: u64 = 1_000;

    fn new(manifest: &Manifest, tell: Tell<'t>) -> Self {
        Self::over(Source::ALL.map(|one| manifest.section(one).last), tell)
    }

    fn over(ends: [u64; Source::ALL.len()], tell: Tell<'t>) -> Self {
        Self {
            tell,
            ends,
            told: 0,
        }
    }

    fn reached(&mut self, source: Source, sequence: u64) {
        let before: u64 = self.ends[..source as usize].iter().sum();
        let (done, of) = (before + sequence, self.ends.iter().sum());
        if done == of || done >= self.told + Self::STEP {
            self.told = done;
            (self.tell)(Progress {
                stream: source.name(),
                done,
                of,
            });
        }
    }
}
