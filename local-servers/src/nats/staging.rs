//! Atomic batches staged in memory.
//!
//! A server with one replica collects the messages of an atomic batch in files of their own before
//! it writes them into the stream, and flushes these files several times, to no use: a batch is
//! acknowledged once it is in the stream, and whatever was staged is thrown away at the server's
//! next start. In memory a batch takes half the time. (With three replicas the server does so by
//! itself.)

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{SHA256, digest};

use crate::home::hex;

/// The streams that batches are written to.
const STREAMS: [&str; 3] = ["EVENTS", "LOCATIONS", "DELIVERIES"];
/// Files that never touch a disk, where there is such a folder.
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
        let name = digest(&SHA256, folder.as_os_str().as_encoded_bytes());
        let name = format!("waypost-{}", hex(&name.as_ref()[..8]));
        Self {
            memory: Path::new(MEMORY).join(name),
        }
    }

    /// Leads the server there, unless that is so already. It removes what it finds staged when it
    /// starts, so this is to be done after each start; and now and then, since some systems clear
    /// the folder when the user logs out. Where it cannot be done batches are staged on the disk
    /// and take longer.
    pub(super) async fn move_to_memory(&self, streams: &Path) {
        if !Path::new(MEMORY).is_dir() {
            return;
        }
        for stream in STREAMS {
            if let Err(error) = self.link(stream, streams).await {
                tracing::warn!(stream, %error, "Batches are staged on the disk.");
            }
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
            // Only while nothing is staged; a batch of somebody who is connected already may be
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
        // Gone already, or never made.
        let _ = fs::remove_dir_all(&self.memory);
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
