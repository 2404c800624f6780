//! Atomic batches staged in memory.
//!
//! A server with one replica collects the messages of an atomic batch in separate files before it
//! writes them to the stream, and flushes these files several times, to no use: a batch is
//! acknowledged once it is in the stream, and staged messages are discarded at the server's next
//! start. In memory a batch takes half the time. (With three replicas the server does so itself.)

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{SHA256, digest};

use crate::home::hex;

/// The streams that batches are written to.
const STREAMS: [&str; 3] = ["EVENTS", "LOCATIONS", "DELIVERIES"];
/// The folder whose files never touch a disk, where it exists.
const MEMORY: &str = "/dev/shm";
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder in memory for what one server stages; removed when dropped.
#[derive(Debug)]
pub(super) struct Staging {
    memory: PathBuf,
}

impl Staging {
    /// The staging of the server that keeps its data in `folder`.
    pub(super) fn of(folder: &Path) -> Self {
        Self::within(Path::new(MEMORY), folder)
    }

    fn within(memory: &Path, folder: &Path) -> Self {
        let name = digest(&SHA256, folder.as_os_str().as_encoded_bytes());
        let name = format!("waypost-{}", hex(&name.as_ref()[..8]));
        Self {
            memory: memory.join(name),
        }
    }

    /// Points the server there, unless that is already done. It removes what it finds staged when
    /// it starts, so this is to be done after each start; and periodically, since some systems
    /// clear the folder when the user logs out. If it fails, batches are staged on disk and take
    /// longer.
    pub(super) async fn move_to_memory(&self, streams: &Path) {
        if !self.memory.parent().is_some_and(Path::is_dir) {
            return;
        }
        if let Err(error) = self.claim() {
            tracing::warn!(folder = %self.memory.display(), %error,
                "Staging batches on disk: the folder in memory belongs to another user");
            for stream in STREAMS {
                self.unlink(&streams.join(stream).join("batches"));
            }
            return;
        }
        for stream in STREAMS {
            if let Err(error) = self.link(stream, streams).await {
                tracing::warn!(stream, %error, "Batches are staged on the disk.");
            }
        }
    }

    /// Creates the folder, or makes sure that this user has created it. Everyone may write to its
    /// parent, so its name may have been taken.
    fn claim(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.memory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.check(),
            made => made,
        }
    }

    fn check(&self) -> io::Result<()> {
        let about = fs::symlink_metadata(&self.memory)?;
        let own = about.uid() == rustix::process::geteuid().as_raw();
        if about.is_dir() && own && about.mode() & 0o777 == 0o700 {
            return Ok(());
        }
        let reason = "it is not a private folder of this user";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }

    /// Points the server away from another user's folder.
    fn unlink(&self, link: &Path) {
        if fs::read_link(link).is_ok_and(|to| to.starts_with(&self.memory)) {
            let _ = fs::remove_file(link).and_then(|()| fs::create_dir(link));
        }
    }

    async fn link(&self, stream: &str, streams: &Path) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        let memory = self.memory.join(stream);
        let link = streams.join(stream).join("batches");
        if link.is_symlink() && memory.is_dir() {
            return Ok(());
        }
        private.create(&memory)?;
        private.create(streams.join(stream))?;
        let mut attempt = 1;
        loop {
            // Only while nothing is staged; a batch of a client that is connected already may be
            // quicker than this.
            let linked = remove_empty(&link).and_then(|()| symlink(&memory, &link));
            match linked {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Already gone, never created, or another user's.
        if self.check().is_ok() {
            let _ = fs::remove_dir_all(&self.memory);
        }
    }
}

fn remove_empty(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => fs::remove_file(path),
        Ok(_) => fs::remove_dir(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;
    use crate::TemporaryHome;

    /// Where batches are staged after another user has `taken` the folder's name.
    async fn staged(taken: impl FnOnce(&Path)) -> (TemporaryHome, Staging, PathBuf) {
        let home = TemporaryHome::new().unwrap();
        let (memory, streams) = (home.path().join("shm"), home.path().join("streams"));
        fs::create_dir_all(&memory).unwrap();
        let staging = Staging::within(&memory, Path::new("/some/home"));
        taken(&staging.memory);
        staging.move_to_memory(&streams).await;
        let batches = streams.join("EVENTS/batches");
        (home, staging, batches)
    }

    fn folder(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn a_new_folder_and_one_that_a_crash_has_left_are_used() {
        for left in [false, true] {
            let (_home, staging, batches) = staged(|path| {
                if left {
                    folder(path, 0o700);
                }
            })
            .await;
            assert_eq!(
                fs::read_link(batches).unwrap(),
                staging.memory.join("EVENTS")
            );
            let mode = fs::metadata(&staging.memory).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[tokio::test]
    async fn a_folder_that_others_can_reach_is_neither_used_nor_removed() {
        for mode in [0o777, 0o750, 0o701] {
            let (_home, staging, batches) = staged(|path| folder(path, mode)).await;
            assert!(!batches.is_symlink(), "{mode:o}");
            let memory = staging.memory.clone();
            drop(staging);
            assert!(memory.is_dir(), "{mode:o}");
        }
    }

    #[tokio::test]
    async fn a_link_and_a_folder_of_somebody_else_are_not_followed() {
        let elsewhere = TemporaryHome::new().unwrap();
        let (_home, staging, batches) =
            staged(|path| symlink(elsewhere.path(), path).unwrap()).await;
        assert!(!batches.is_symlink());
        drop(staging);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        if rustix::process::geteuid().is_root() {
            let (_home, _staging, batches) = staged(|path| {
                folder(path, 0o700);
                chown(path, Some(12_345), None).unwrap();
            })
            .await;
            assert!(!batches.is_symlink());
        }
    }
}
