//! The progress of an import, saved beside its file, so that the next run continues from there.
//!
//! It contains only what the log has confirmed. A checkpoint of another file, of another import of
//! the same file, or of a log that was restored meanwhile, is ignored. If the file could not be read
//! to its end, another one that begins with the same rows is taken for a whole copy of it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use command_api::records::{FilePosition, Imported};
use serde::{Deserialize, Serialize};

use super::rejects::Written;
use super::{from_hex, hex, source};

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
    /// The digest of the contents up to here, if what follows could not be read.
    #[serde(default)]
    beginning: Option<String>,
    /// The digest of the copy with which the import began, if this is another one.
    #[serde(default)]
    first_copy: Option<String>,
}

/// The file beside the imported one.
pub(super) struct Checkpoint {
    path: PathBuf,
    subject: Subject,
    /// The imported file, and which one it was when the import began.
    file: PathBuf,
    inode: Option<u64>,
    /// The digest of the copy with which the import began, if this is another one.
    first_copy: Option<String>,
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
            file: source.to_owned(),
            inode: inode_of(source),
            first_copy: None,
            written: None,
        }
    }

    /// Reads what an earlier run of the same import has left, if it did not reach the end.
    pub(super) fn read(&mut self) -> Option<Done> {
        let about = fs::symlink_metadata(&self.path).ok()?;
        // Only a file of this user counts.
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let done: Done = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let is_same = done.subject == self.subject;
        if !is_same && !self.is_whole_copy(&done) {
            return None;
        }
        let other_copy = || (!is_same).then(|| done.subject.file.clone());
        self.first_copy = done.first_copy.clone().or_else(other_copy);
        Some(done)
    }

    /// Whether this is the same import of a file that goes on where the other could not be read.
    fn is_whole_copy(&self, done: &Done) -> bool {
        let same = Subject {
            file: done.subject.file.clone(),
            ..self.subject.clone()
        };
        done.subject == same
            && done.beginning.is_some()
            && done.beginning == self.beginning(done.bytes)
    }

    /// The digest of the first bytes of the contents.
    fn beginning(&self, bytes: u64) -> Option<String> {
        let digest = source::digest_of_beginning(&self.file, bytes).ok()?;
        Some(hex(&digest))
    }

    /// The digest of the copy with which the import began, if this is another one.
    pub(super) fn source(&self) -> Option<Vec<u8>> {
        from_hex(self.first_copy.as_deref()?)
    }

    /// Whether it is time to write it again.
    pub(super) fn is_due(&self, so_far: &Imported) -> bool {
        match self.written {
            Some(at) => at.elapsed() >= EVERY,
            None => so_far.through.is_some_and(|done| done.rows >= FIRST),
        }
    }

    /// Saves the progress of the import.
    pub(super) fn write(&mut self, so_far: &Imported, rejects: Option<Written>) -> io::Result<()> {
        self.save(so_far, rejects, None)
    }

    /// Saves the progress of the import of a file that cannot be read on.
    pub(super) fn write_unreadable(
        &mut self,
        so_far: &Imported,
        rejects: Option<Written>,
    ) -> io::Result<()> {
        // A file that has taken its place meanwhile is not what was imported.
        let is_same = inode_of(&self.file) == self.inode;
        let through = so_far.through.filter(|_| is_same);
        let beginning = through.and_then(|through| self.beginning(through.bytes));
        self.save(so_far, rejects, beginning)
    }

    /// A reader sees this or the previous state.
    fn save(
        &mut self,
        so_far: &Imported,
        rejects: Option<Written>,
        beginning: Option<String>,
    ) -> io::Result<()> {
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
            beginning,
            first_copy: self.first_copy.clone(),
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

fn inode_of(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.ino())
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

#[cfg(test)]
mod tests {
    use local_servers::TemporaryHome;

    use super::*;

    fn checkpoint(file: &Path, digest: &str) -> Checkpoint {
        let subject = Subject {
            file: digest.to_owned(),
            org: "org".to_owned(),
            kind: "contacts".to_owned(),
            named: Vec::new(),
        };
        Checkpoint::beside(file, subject)
    }

    /// The first of two rows is done.
    fn so_far() -> Imported {
        Imported {
            created: 1,
            through: Some(FilePosition {
                rows: 1,
                lines: 2,
                bytes: 5,
            }),
            ..Imported::default()
        }
    }

    #[test]
    fn a_whole_copy_goes_on_where_the_damaged_one_could_not_be_read() {
        let home = TemporaryHome::new().unwrap();
        let file = home.path().join("contacts.csv");
        fs::write(&file, "id\na\nb").unwrap();
        let mut damaged = checkpoint(&file, "0a0b");
        damaged.write_unreadable(&so_far(), None).unwrap();
        assert_eq!(damaged.source(), None);
        fs::write(&file, "id\na\nbcd\n").unwrap();
        let mut whole = checkpoint(&file, "0c0d");
        assert_eq!(whole.read().unwrap().place().rows, 1);
        // Rows without an id get the same one as before.
        assert_eq!(whole.source(), Some(vec![0x0a, 0x0b]));
        whole.write(&so_far(), None).unwrap();
        let mut interrupted = checkpoint(&file, "0c0d");
        assert!(interrupted.read().is_some());
        assert_eq!(interrupted.source(), Some(vec![0x0a, 0x0b]));
    }

    #[test]
    fn another_file_begins_anew() {
        let home = TemporaryHome::new().unwrap();
        let file = home.path().join("contacts.csv");
        fs::write(&file, "id\na\nb").unwrap();
        let mut damaged = checkpoint(&file, "0a0b");
        damaged.write_unreadable(&so_far(), None).unwrap();
        fs::write(&file, "id\nz\nbcd\n").unwrap();
        let mut other = checkpoint(&file, "0c0d");
        assert!(other.read().is_none() && other.source().is_none());
        // What was merely interrupted says nothing about another copy.
        fs::write(&file, "id\na\nbcd\n").unwrap();
        damaged.write(&so_far(), None).unwrap();
        assert!(checkpoint(&file, "0c0d").read().is_none());
        assert!(checkpoint(&file, "0a0b").read().is_some());
    }

    #[test]
    fn a_file_that_took_the_place_of_the_damaged_one_is_not_what_was_imported() {
        let home = TemporaryHome::new().unwrap();
        let file = home.path().join("contacts.csv");
        fs::write(&file, "id\nz\nb").unwrap();
        let mut damaged = checkpoint(&file, "0a0b");
        let copy = home.path().join("copy.csv");
        fs::write(&copy, "id\na\nbcd\n").unwrap();
        fs::rename(&copy, &file).unwrap();
        damaged.write_unreadable(&so_far(), None).unwrap();
        assert!(checkpoint(&file, "0c0d").read().is_none());
    }
}
