//! A file system for a single server, whose power can fail, and which can be full or hang.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::eventually_within;
use tokio::process::Command;

/// The size of each; its file only uses as much space as is written to it.
const SIZE: &str = "8G";
/// How long it may take until it is no longer in use.
const IN_USE: Duration = Duration::from_secs(30);
/// The required programs, and the Debian packages that provide them.
const PROGRAMS: [(&str, &str); 5] = [
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("fsfreeze", "util-linux"),
    ("xfs_io", "xfsprogs"),
];

/// A file system in a file, mounted where a server keeps its data.
#[derive(Debug)]
pub(crate) struct Disk {
    data: PathBuf,
    image: PathBuf,
}

impl Disk {
    /// Moves the data of a stopped server to a file system of its own.
    ///
    /// # Panics
    /// If it cannot be created, which requires root and [`PROGRAMS`].
    pub(crate) async fn below(data: &Path) -> Self {
        let disk = Self {
            data: data.to_owned(),
            image: data.with_extension("disk"),
        };
        let before = data.with_extension("before");
        std::fs::rename(data, &before).expect("data to move");
        std::fs::create_dir(data).expect("a folder");
        run(Command::new("truncate").args(["-s", SIZE]).arg(&disk.image)).await;
        let mut make = Command::new("mkfs.ext4");
        run(make.args(["-q", "-F", "-m", "0"]).arg(&disk.image)).await;
        disk.mount().await;
        std::fs::remove_dir(data.join("lost+found")).expect("a new file system");
        copy(&before, data).await;
        std::fs::remove_dir_all(&before).expect("data that was moved");
        disk
    }

    /// Stops all writes from now on; what was not yet on the disk is lost.
    pub(crate) async fn shut_down(&self) {
        let mut shut_down = Command::new("xfs_io");
        run(shut_down.args(["-x", "-c", "shutdown"]).arg(&self.data)).await;
    }

    /// Mounts it again with what is on the disk, once it is no longer in use.
    pub(crate) async fn bring_back(&self) {
        let unmounted = eventually_within(IN_USE, "a disk that nobody uses", async || {
            let unmounting = Command::new("umount").arg(&self.data).output().await;
            unmounting.ok().filter(|output| output.status.success())
        });
        unmounted.await;
        self.mount().await;
    }

    /// Fills it completely.
    pub(crate) fn fill(&self) {
        let about = rustix::fs::statvfs(&self.data).expect("the disk's size");
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        let file = std::fs::File::create(self.filler()).expect("a file");
        // Space that another process took first is not available to it.
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, free);
    }

    /// Frees the space again.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.filler()).expect("what filled the disk");
    }

    /// Blocks all writers from now on.
    pub(crate) async fn freeze(&self) {
        run(Command::new("fsfreeze").arg("--freeze").arg(&self.data)).await;
    }

    /// Lets the blocked writers continue.
    pub(crate) async fn thaw(&self) {
        run(Command::new("fsfreeze").arg("--unfreeze").arg(&self.data)).await;
    }

    fn filler(&self) -> PathBuf {
        self.data.join("filler")
    }

    async fn mount(&self) {
        let mut mount = Command::new("mount");
        run(mount.args(["-o", "loop"]).arg(&self.image).arg(&self.data)).await;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that waits for it could not exit.
        let mut thaw = std::process::Command::new("fsfreeze");
        let _ = thaw.arg("--unfreeze").arg(&self.data).output();
        // Lazily, in case another process still uses it.
        let mut unmount = std::process::Command::new("umount");
        let _ = unmount.arg("--lazy").arg(&self.data).status();
    }
}

/// Returns what this machine lacks for disks, if anything.
pub fn missing_for_disks() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount file systems".to_owned());
    }
    let lacks = |(program, _): &&(&str, &str)| {
        let mut version = std::process::Command::new(program);
        version.arg("-V").output().is_err()
    };
    let missing = PROGRAMS.iter().find(lacks);
    missing.map(|(program, package)| {
        format!("there is no {program} (Debian has it in the package {package})")
    })
}

/// Copies a folder's contents into another, owners and times included, and flushes it.
async fn copy(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    run(copy.arg("-a").arg(from.join(".")).arg(to)).await;
    run(Command::new("sync").arg("-f").arg(to)).await;
}

/// Saves a folder's contents in another one, which it creates.
pub(crate) async fn keep(folder: &Path, kept: &Path) {
    std::fs::create_dir(kept).expect("a folder");
    copy(folder, kept).await;
}

/// Replaces a folder's contents with what was saved, and deletes the saved copy.
pub(crate) async fn put_back(kept: &Path, folder: &Path) {
    clear(folder).expect("a folder to clear");
    copy(kept, folder).await;
    std::fs::remove_dir_all(kept).expect("what was kept");
}

/// Removes everything in a folder, which may be the mount point of a disk.
pub(crate) fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

async fn run(command: &mut Command) {
    let output = command.output().await.expect("a program that starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
