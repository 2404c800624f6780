use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};

use crate::{Error, nats, postgres};

const REMOVAL_LIMIT: Duration = Duration::from_secs(5);
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// Addresses of servers, passwords included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Urls {
    /// For `NATS_URL`.
    pub nats: Option<String>,
    /// For `DATABASE_URL`: the role that owns everything.
    pub database: Option<String>,
    /// For `WAYPOST_READ_DATABASE_URL`: the role that can only read.
    pub reader: Option<String>,
}

impl Urls {
    /// Reads `NATS_URL`, `DATABASE_URL` and `WAYPOST_READ_DATABASE_URL`; empty counts as absent.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            nats: variable("NATS_URL"),
            database: variable("DATABASE_URL"),
            reader: variable("WAYPOST_READ_DATABASE_URL"),
        }
    }

    /// Reads the addresses stored in the home. They do not show whether the servers run.
    pub fn of(home: &Path) -> Self {
        Self {
            nats: nats::remembered_url(home),
            database: postgres::remembered_url(home, postgres::OWNER),
            reader: postgres::remembered_url(home, postgres::READER),
        }
    }
}

/// A separate home for a test or a bench, removed when dropped.
///
/// Declare it before the servers that live in it, so that they stop first.
#[derive(Debug)]
pub struct TemporaryHome(PathBuf);

impl TemporaryHome {
    /// Creates an empty home in the system's folder for temporary files.
    pub fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("waypost-{}", random_hex::<6>()?));
        fs::create_dir(&path).map_err(Error::file("create", &path))?;
        // The postgres account must be able to pass through if root runs the server.
        fs::set_permissions(&path, Permissions::from_mode(0o755))
            .map_err(Error::file("open up", &path))?;
        Ok(Self(path))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryHome {
    fn drop(&mut self) {
        postgres::remove_outside(&self.0);
        let start = Instant::now();
        while let Err(error) = fs::remove_dir_all(&self.0) {
            // The server of a process that was killed may still be writing.
            if start.elapsed() > REMOVAL_LIMIT {
                tracing::warn!(path = %self.0.display(), %error, "A temporary home stays behind.");
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// Creates the home if needed and returns its canonical path, which identifies its processes.
pub(crate) fn open(home: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(home).map_err(Error::file("create", home))?;
    home.canonicalize().map_err(Error::file("find", home))
}

/// Held while a server of a home is ours; the system releases it when this process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Locks the folder for this process.
    pub(crate) fn take(server: &'static str, folder: &Path) -> Result<Self, Error> {
        let path = folder.join("lock");
        let file = File::create(&path).map_err(Error::file("create", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse {
                server,
                folder: folder.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(Error::file("lock", path)(source)),
        }
    }
}

impl Drop for Lock {
    /// A program that another thread is just starting has the file open for a moment too, so
    /// closing it would not release the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// A password of this home.
pub(crate) struct Secret {
    pub(crate) value: String,
    /// Whether it was created just now, so that the server does not know it yet.
    pub(crate) fresh: bool,
}

/// Returns the password stored under this name, created at the first call.
pub(crate) fn secret(home: &Path, name: &str) -> Result<Secret, Error> {
    if let Some(value) = known_secret(home, name)? {
        return Ok(Secret {
            value,
            fresh: false,
        });
    }
    let value = random_hex::<24>()?;
    let path = secret_path(home, name);
    write_secret(&path, &value).map_err(Error::file("write", &path))?;
    Ok(Secret { value, fresh: true })
}

/// Stores another home's password here too.
pub(crate) fn share_secret(home: &Path, name: &str, value: &str) -> Result<(), Error> {
    let path = secret_path(home, name);
    write_secret(&path, value).map_err(Error::file("write", &path))
}

/// Returns the password stored under this name, if there is one.
pub(crate) fn known_secret(home: &Path, name: &str) -> Result<Option<String>, Error> {
    let path = secret_path(home, name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|value| !value.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}

fn secret_path(home: &Path, name: &str) -> PathBuf {
    home.join("secrets").join(name)
}

/// Writes it whole or not at all: a torn password would lock us out of our own server.
fn write_secret(path: &Path, value: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let draft = path.with_extension("draft");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    writeln!(file, "{value}")?;
    file.sync_all()?;
    fs::rename(draft, path)
}

fn random_hex<const BYTES: usize>() -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::File {
            action: "read",
            path: "/dev/urandom".into(),
            source: std::io::Error::other("no randomness"),
        })?;
    Ok(hex(&bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_read_by_its_owner_alone() {
        let home = TemporaryHome::new().unwrap();
        let first = secret(home.path(), "word").unwrap();
        let second = secret(home.path(), "word").unwrap();
        assert!(first.fresh && !second.fresh);
        assert_eq!(first.value, second.value);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&secret_path(home.path(), "word")), 0o600);
        assert_eq!(mode(&home.path().join("secrets")), 0o700);
    }

    #[test]
    fn a_folder_is_taken_once() {
        let home = TemporaryHome::new().unwrap();
        let _lock = Lock::take("NATS", home.path()).unwrap();
        let second = Lock::take("NATS", home.path());
        assert!(matches!(second, Err(Error::InUse { .. })));
    }

    #[test]
    fn a_folder_is_free_again_though_a_child_still_has_its_lock_open() {
        let home = TemporaryHome::new().unwrap();
        let lock = Lock::take("NATS", home.path()).unwrap();
        let _of_a_child = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(Lock::take("NATS", home.path()).is_ok());
    }

    #[test]
    fn a_home_that_never_started_has_no_addresses() {
        let home = TemporaryHome::new().unwrap();
        assert_eq!(Urls::of(home.path()), Urls::default());
    }
}
