//! Keys in files: created once, and changed so that there is a whole one at every instant.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

use super::{KEY_BYTES, Keyring, KeyringError};

const VARIABLE: &str = "WAYPOST_MASTER_KEY";

/// The files of a home's master key.
#[derive(Clone, Debug)]
pub struct MasterKeyFiles {
    key: PathBuf,
    new: PathBuf,
}

impl MasterKeyFiles {
    /// The files of a home; `None` if a master key is given elsewhere.
    pub fn of(home: &Path) -> Option<Self> {
        let given = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if given(VARIABLE) || given(&format!("{VARIABLE}_FILE")) {
            return None;
        }
        let secrets = home.join("secrets");
        Some(Self {
            key: secrets.join("master.key"),
            new: secrets.join("master.key.new"),
        })
    }

    /// The key that is to replace the current one, if one was made.
    pub fn next(&self) -> Result<Option<Keyring>, KeyringError> {
        match read(&self.new) {
            Ok(key) => Ok(Some(Keyring::from_master(&key))),
            Err(KeyringError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The same, created if there is none.
    pub fn next_or_make(&self) -> Result<Keyring, KeyringError> {
        if let Some(next) = self.next()? {
            return Ok(next);
        }
        Ok(Keyring::from_master(&create(&self.new)?))
    }

    /// Replaces the current key with the new one; returns where the old one is kept.
    pub fn replace(&self) -> Result<PathBuf, KeyringError> {
        let kept = self.keep_old()?;
        let failed = |source| KeyringError::File {
            path: self.key.clone(),
            source,
        };
        fs::rename(&self.new, &self.key).map_err(failed)?;
        sync_folder(&self.key).map_err(failed)?;
        Ok(kept)
    }

    /// Links the current key beside itself, under a name that is not taken by another.
    fn keep_old(&self) -> Result<PathBuf, KeyringError> {
        let present = read(&self.key)?;
        let mut number = 1;
        loop {
            let path = self.key.with_extension(match number {
                1 => "key.old".to_owned(),
                number => format!("key.old-{number}"),
            });
            match fs::hard_link(&self.key, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if read(&path)? == present {
                        return Ok(path);
                    }
                    number += 1;
                }
                Err(source) => return Err(KeyringError::File { path, source }),
            }
        }
    }
}

impl Keyring {
    /// A keyring from a master key in base64, as a file holds it.
    pub fn parse_master(text: &str, named: &str) -> Result<Self, KeyringError> {
        Ok(Self::from_master(&parse(text, named)?))
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

pub(super) fn read(path: &Path) -> Result<[u8; KEY_BYTES], KeyringError> {
    let text = fs::read_to_string(path).map_err(|source| KeyringError::File {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, &path.display().to_string())
}

/// A key, and the file that it was read from.
pub(super) struct Loaded {
    pub(super) bytes: [u8; KEY_BYTES],
    pub(super) file: Option<PathBuf>,
}

/// Takes a key from a variable or a file, which is created if it is missing.
pub(super) fn load_key(variable: &str, path: &Path) -> Result<Loaded, KeyringError> {
    let given = std::env::var(variable).unwrap_or_default();
    if !given.is_empty() {
        let bytes = parse(&given, variable)?;
        return Ok(Loaded { bytes, file: None });
    }
    let elsewhere = std::env::var_os(format!("{variable}_FILE")).unwrap_or_default();
    let made_by_others = !elsewhere.is_empty();
    let path = if made_by_others {
        Path::new(&elsewhere)
    } else {
        path
    };
    let bytes = match read(path) {
        Err(KeyringError::File { source, .. })
            if source.kind() == io::ErrorKind::NotFound && !made_by_others =>
        {
            read_or_create(path)
        }
        found => found,
    };
    let (bytes, file) = (bytes?, Some(path.to_owned()));
    Ok(Loaded { bytes, file })
}

fn read_or_create(path: &Path) -> Result<[u8; KEY_BYTES], KeyringError> {
    match create(path) {
        // Another process of this home was quicker: its key is the key.
        Err(KeyringError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            read(path)
        }
        made => made,
    }
}

fn parse(text: &str, named: &str) -> Result<[u8; KEY_BYTES], KeyringError> {
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    let key = bytes.as_slice().try_into();
    key.map_err(|_| KeyringError::Malformed(named.to_owned()))
}

fn create(path: &Path) -> Result<[u8; KEY_BYTES], KeyringError> {
    let failed = |source| KeyringError::File {
        path: path.to_owned(),
        source,
    };
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| KeyringError::NoRandomness)?;
    if let Some(folder) = path.parent() {
        if let Some(home) = folder.parent() {
            fs::create_dir_all(home).map_err(failed)?;
        }
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed)?;
    }
    // Written aside and linked into place, so that no process ever reads half a key.
    let aside = path.with_extension(format!("{}.new", Uuid::new_v4().simple()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .map_err(failed)?;
    file.write_all(STANDARD.encode(key).as_bytes())
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let placed = fs::hard_link(&aside, path);
    fs::remove_file(&aside).map_err(failed)?;
    placed.map_err(failed)?;
    sync_folder(path).map_err(failed)?;
    Ok(key)
}
