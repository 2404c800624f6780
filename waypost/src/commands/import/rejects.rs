//! Rows that were not written, kept in a file beside the one they came from.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use command_api::records::Rejected;
use serde_json::json;

/// The file of rejects; made with the first.
pub(super) struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Rejects {
    /// `contacts.csv` gets `contacts.csv.rejects.ndjson`; standard input a file in this folder.
    pub(super) fn beside(source: &Path) -> Self {
        let name = if source == Path::new("-") {
            "stdin".into()
        } else {
            source.as_os_str().to_owned()
        };
        let mut name: std::ffi::OsString = name;
        name.push(".rejects.ndjson");
        Self {
            path: PathBuf::from(name),
            file: None,
        }
    }

    pub(super) fn add(&mut self, rejected: &[Rejected]) -> io::Result<()> {
        if rejected.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(File::create(&self.path)?)),
        };
        for row in rejected {
            writeln!(
                file,
                "{}",
                json!({ "row": row.number, "error": row.reason })
            )?;
        }
        Ok(())
    }

    /// The file's path, if there is one.
    pub(super) fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some(mut file) = self.file else {
            return Ok(None);
        };
        file.flush()?;
        Ok(Some(self.path))
    }
}
