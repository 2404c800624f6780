//! The manifest: what a backup consists of. A folder without one is no backup.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemas::Log;
use serde::{Deserialize, Serialize};

use super::BackupError;
use super::chain::Chain;
use crate::vault::named_by;
use crate::{Keyring, Position};

const FILE: &str = "manifest.json";
const UNFINISHED: &str = "manifest.json.part";
/// The format that this program writes and reads.
const FORMAT: u32 = 1;
/// Purpose of the hash that identifies the master key.
const PURPOSE: &str = "backup";

/// One stream of the log, the bucket of owners' keys, or that of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Source {
    Events,
    Locations,
    Deliveries,
    Keys,
    Checkpoints,
}

impl Source {
    pub(super) const ALL: [Self; 5] = [
        Self::Events,
        Self::Locations,
        Self::Deliveries,
        Self::Keys,
        Self::Checkpoints,
    ];

    pub(super) fn of(log: Log) -> Self {
        match log {
            Log::Events => Self::Events,
            Log::Locations => Self::Locations,
            Log::Deliveries => Self::Deliveries,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Events => "EVENTS",
            Self::Locations => "LOCATIONS",
            Self::Deliveries => "DELIVERIES",
            Self::Keys => "KEYS",
            Self::Checkpoints => "CHECKPOINTS",
        }
    }
}

/// The contents of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    format: u32,
    /// When it was started.
    pub taken_at: String,
    /// Identifies the master key that wraps the keys within, and reveals nothing about it.
    master_key: String,
    streams: Vec<Section>,
    /// The sealed records that kept the names when a master key was rotated, as stored in the
    /// bucket of keys, by name; empty if none ever was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<(String, String)>,
    /// Made with the master key over all of the above but the records, which are sealed themselves.
    #[serde(default)]
    seal: String,
}

/// What the backup holds of one stream, or of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Section {
    pub(super) name: Source,
    /// The stream's epoch when it was read; a bucket has none.
    pub(super) epoch: u32,
    /// The sequence of the first message; 0 if there is none.
    pub(super) first: u64,
    /// The stream's last sequence when it began: the backup ends there. Checkpoints are counted.
    pub(super) last: u64,
    pub(super) messages: u64,
    /// Sequences of messages that were erased or have expired.
    pub(super) gone: u64,
    pub(super) files: u32,
    pub(super) bytes: u64,
    /// The hash at the end of the chain.
    pub(super) chain: String,
}

impl Section {
    pub(super) fn empty(name: Source) -> Self {
        Self {
            name,
            epoch: 0,
            first: 0,
            last: 0,
            messages: 0,
            gone: 0,
            files: 0,
            bytes: 0,
            chain: Chain::start(name.name()).to_string(),
        }
    }

    /// Earlier backups had no checkpoints, and their seals do not cover them.
    fn is_sealed(&self) -> bool {
        self.name != Source::Checkpoints || self.messages > 0
    }
}

impl Manifest {
    pub(super) fn new(
        taken_at: String,
        keyring: &Keyring,
        streams: Vec<Section>,
        records: &[(String, Vec<u8>)],
    ) -> Self {
        let encoded = |(name, sealed): &(String, Vec<u8>)| (name.clone(), BASE64.encode(sealed));
        let mut manifest = Self {
            format: FORMAT,
            taken_at,
            master_key: key_name(keyring),
            streams,
            records: records.iter().map(encoded).collect(),
            seal: String::new(),
        };
        manifest.seal = manifest.sealed_by(keyring);
        manifest
    }

    /// Reads the manifest of a backup that was made with this master key.
    pub fn of(folder: &Path, keyring: &Keyring) -> Result<Self, BackupError> {
        let manifest = Self::read(folder)?;
        manifest.keyring(keyring)?;
        Ok(manifest)
    }

    /// The keyring that made the names in the backup, if this master key opens it.
    pub(super) fn keyring(&self, keyring: &Keyring) -> Result<Keyring, BackupError> {
        let decode =
            |(name, text): &(String, String)| Some((name.clone(), BASE64.decode(text).ok()?));
        let records: Vec<_> = self.records.iter().filter_map(decode).collect();
        let keyring = if records.is_empty() {
            keyring.clone()
        } else {
            named_by(keyring, &records).ok_or(BackupError::OtherKey)?
        };
        self.check_key(&keyring)?;
        Ok(keyring)
    }

    /// Reads a folder's manifest.
    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BackupError::NoBackup(folder.to_owned()));
            }
            Err(source) => return Err(BackupError::File { path, source }),
        };
        let unreadable = |reason: String| BackupError::Manifest { reason };
        let mut manifest: Self =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(unreadable(format!(
                "it has the form {format}, not {FORMAT}"
            )));
        }
        let names: Vec<Source> = manifest.streams.iter().map(|one| one.name).collect();
        if names == Source::ALL[..Source::Checkpoints as usize] {
            manifest.streams.push(Section::empty(Source::Checkpoints));
        } else if names != Source::ALL {
            return Err(unreadable("it does not name each stream once".to_owned()));
        }
        Ok(manifest)
    }

    /// Completes a backup: the folder is one from now on. Written whole or not at all; on disk on
    /// return.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let (unfinished, path) = (folder.join(UNFINISHED), folder.join(FILE));
        let write = || {
            let mut file = File::create(&unfinished)?;
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            file.write_all(&text)?;
            file.sync_all()?;
            // The other files' names first: a manifest must not outlive what it names.
            File::open(folder)?.sync_all()?;
            fs::rename(&unfinished, &path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|source| BackupError::File {
            path: path.clone(),
            source,
        })
    }

    /// Checks that it was written by an installation with this master key, and not changed since.
    fn check_key(&self, keyring: &Keyring) -> Result<(), BackupError> {
        if self.master_key != key_name(keyring) {
            return Err(BackupError::OtherKey);
        }
        if self.seal != self.sealed_by(keyring) {
            let reason = "it was changed: its seal does not fit".to_owned();
            return Err(BackupError::Manifest { reason });
        }
        Ok(())
    }

    pub(super) fn section(&self, source: Source) -> &Section {
        // `read` and `new` ensure that each is there, in this order.
        &self.streams[source as usize]
    }

    /// Number of messages it holds of a stream of the log.
    pub fn messages(&self, log: Log) -> u64 {
        self.section(Source::of(log)).messages
    }

    /// Number of owners' keys it holds.
    pub fn keys(&self) -> u64 {
        let records = self.records.len() as u64;
        self.section(Source::Keys).messages.saturating_sub(records)
    }

    /// Total bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|section| section.bytes).sum()
    }

    /// The last position it holds of a stream of the log, in the epoch of that time.
    pub fn position(&self, log: Log) -> Position {
        let section = self.section(Source::of(log));
        Position::new(log, section.epoch, section.last)
    }

    fn sealed_by(&self, keyring: &Keyring) -> String {
        let sealed = self.streams.iter().filter(|one| one.is_sealed());
        let streams = sealed.map(|one| format!("{one:?}\n"));
        let streams: String = streams.collect();
        let format = self.format.to_string();
        let parts = [format.as_str(), &self.taken_at, &self.master_key, &streams];
        keyring.keyed_hash(PURPOSE, &parts.map(str::as_bytes))
    }
}

fn key_name(keyring: &Keyring) -> String {
    keyring.keyed_hash(PURPOSE, &[b"master key"])
}
