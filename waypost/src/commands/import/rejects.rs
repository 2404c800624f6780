//! Rows that were not written, saved in a file beside their source.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use command_api::records::Rejected;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// No file is opened through a link that another user has put there.
const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The file of rejects; created with the first.
pub(super) struct Rejects {
    source: OsString,
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

/// How much of a file of rejects is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Written {
    path: PathBuf,
    bytes: u64,
}

impl Rejects {
    /// `contacts.csv` gets `contacts.csv.rejects.ndjson`, the next time
    /// `contacts.csv.rejects-2.ndjson`; standard input a file in this folder.
    pub(super) fn beside(source: &Path) -> Self {
        let name = if source == Path::new("-") {
            "stdin".into()
        } else {
            source.as_os_str().to_owned()
        };
        let source: OsString = name;
        let mut name = source.clone();
        name.push(".rejects.ndjson");
        Self {
            source,
            path: PathBuf::from(name),
            file: None,
        }
    }

    /// Continues the file of an earlier run; what that wrote beyond this is written again.
    pub(super) fn go_on(&mut self, written: Written) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.write(true).custom_flags(NOFOLLOW);
        let mut file = options.open(&written.path)?;
        file.set_len(written.bytes)?;
        file.seek(SeekFrom::End(0))?;
        self.path = written.path;
        self.file = Some(BufWriter::new(file));
        Ok(())
    }

    /// Writes out the buffered rows.
    pub(super) fn flush(&mut self) -> io::Result<Option<Written>> {
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        Ok(Some(Written {
            path: self.path.clone(),
            bytes: file.stream_position()?,
        }))
    }

    pub(super) fn add(&mut self, rejected: &[Rejected]) -> io::Result<()> {
        if rejected.is_empty() {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.make()?),
        };
        let file = self.file.insert(file);
        for row in rejected {
            let mut told = json!({ "row": row.number, "line": row.line });
            if let Some(field) = &row.fault.field {
                told["field"] = json!(field);
            }
            told["error"] = json!(row.fault.reason);
            writeln!(file, "{told}")?;
        }
        Ok(())
    }

    /// Creates the file for its owner only, as it contains personal data. Existing files, and links
    /// that another user has put there, are not written to; another number is taken instead.
    fn make(&mut self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut number = 1;
        loop {
            match options.open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => return opened,
            }
            let mut name = self.source.clone();
            name.push(format!(".rejects-{number}.ndjson"));
            self.path = PathBuf::from(name);
        }
    }

    /// Returns the file's path, if there is one.
    pub(super) fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some(mut file) = self.file else {
            return Ok(None);
        };
        file.flush()?;
        Ok(Some(self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn written(source: &Path) -> PathBuf {
        let mut rejects = Rejects::beside(source);
        let row = Rejected {
            number: 1,
            line: 2,
            fault: "email: is no address".to_owned().into(),
        };
        rejects.add(&[row]).unwrap();
        rejects.finish().unwrap().unwrap()
    }

    #[test]
    fn rejects_are_for_their_owner_and_never_overwrite_or_follow() {
        let home = local_servers::TemporaryHome::new().unwrap();
        let (source, theirs) = (home.path().join("c.csv"), home.path().join("theirs"));
        fs::write(&theirs, "theirs").unwrap();
        let first = home.path().join("c.csv.rejects.ndjson");
        symlink(&theirs, &first).unwrap();
        let second = written(&source);
        assert_eq!(second, home.path().join("c.csv.rejects-2.ndjson"));
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        let mode = fs::metadata(&second).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let third = written(&source);
        assert_eq!(third, home.path().join("c.csv.rejects-3.ndjson"));
    }
}
