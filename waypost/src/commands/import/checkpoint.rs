//! The progress of an import, saved beside its file, so that the next run continues from there.
//!
//! It contains only what the log has confirmed. A checkpoint of another file, of another import of
//! the same file, or of a log that was restored meanwhile, is ignored.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use command_api::records::{FilePosition, Imported};
use serde::{Deserialize, Serialize};

use super::rejects::Written;

/// It is written from this number of rows on. Fewer are imported again as quickly.
const FIRST: u64 = 1_000;
/// How often it is written.
const EVERY: Duration = Duration::from_secs(1);

/// Identifies an import: two runs of the same import have equal subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    /// The digest of the file.
    pub(super) file: String,
    pub(super) org: String,
    pub(super) kind: String,
    /// The columns that were named.
    pub(super) named: Vec<String>,
}

/// What earlier runs have done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    #[serde(flatten)]
    subject: Subject,
    rows: u64,
    lines: u64,
    bytes: u64,
    pub(super) imported: u64,
    pub(super) rejected: u64,
    pub(super) rejects: Option<Written>,
    pub(super) position: Option<String>,
}

/// The file beside the imported one.
pub(super) struct Checkpoint {
    path: PathBuf,
    subject: Subject,
    written: Option<Instant>,
}

impl Done {
    /// Where the rows that are done end.
    pub(super) fn place(&self) -> FilePosition {
        FilePosition {
            rows: self.rows,
            lines: self.lines,
            bytes: self.bytes,
        }
    }
}

impl Checkpoint {
    /// The checkpoint of an import: for `contacts.csv`, `contacts.csv.import.json`.
    pub(super) fn beside(source: &Path, subject: Subject) -> Self {
        Self {
            path: with_suffix(source, ".import.json"),
            subject,
            written: None,
        }
    }

    /// Reads what an earlier run of the same import has left, if it did not reach the end.
    pub(super) fn read(&self) -> Option<Done> {
        let about = fs::symlink_metadata(&self.path).ok()?;
        // Only a file of this user counts.
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let done: Done = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (done.subject == self.subject).then_some(done)
    }

    /// Whether it is time to write it again.
    pub(super) fn is_due(&self, so_far: &Imported) -> bool {
        match self.written {
            Some(at) => at.elapsed() >= EVERY,
            None => so_far.through.is_some_and(|done| done.rows >= FIRST),
        }
    }

    /// Saves the progress of the import: a reader sees this or the previous state.
    pub(super) fn write(&mut self, so_far: &Imported, rejects: Option<Written>) -> io::Result<()> {
        let Some(through) = so_far.through else {
            return Ok(());
        };
        self.written = Some(Instant::now());
        let done = Done {
            subject: self.subject.clone(),
            rows: through.rows,
            lines: through.lines,
            bytes: through.bytes,
            imported: so_far.imported(),
            rejected: so_far.rejected,
            rejects,
            position: so_far.position.map(|position| position.to_string()),
        };
        let draft = with_suffix(&self.path, &format!(".{}", std::process::id()));
        let written = created(&draft).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(&done)?)?;
            fs::rename(&draft, &self.path)
        });
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// Removes the checkpoint when the import has reached the end of its file.
    pub(super) fn end(self) -> io::Result<()> {
        match fs::remove_file(self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn created(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
