//! The progress of an import, on a terminal.

use std::io::Read;
use std::path::Path;

use command_api::records::Imported;
use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar over the file's bytes; without a terminal nothing is drawn.
#[derive(Clone, Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// For a file, whose size is known, or for standard input, whose end is not.
    pub(super) fn of(file: &Path) -> Self {
        let size = std::fs::metadata(file)
            .ok()
            .filter(std::fs::Metadata::is_file)
            .map(|m| m.len());
        let (bar, template) = match size {
            Some(size) => (
                ProgressBar::new(size),
                "{bar:40} {percent}% {msg} (ends in {eta})",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
        };
        let style = ProgressStyle::with_template(template);
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Of reading that is not part of an import; shows nothing.
    pub(super) fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Wraps a reader of the file to move the bar. A file is read as fast as it is imported.
    pub(super) fn of_reading<R: Read>(&self, file: R) -> impl Read + use<R> {
        self.0.wrap_read(file)
    }

    /// Starts at this byte: what an earlier run has done says nothing about the remaining time.
    pub(super) fn begin_at(&self, byte: u64) {
        self.0.set_position(byte);
        self.begin_here();
    }

    /// Starts the estimate here: what was read so far says nothing about the remaining time.
    pub(super) fn begin_here(&self) {
        self.0.reset_eta();
    }

    /// Shows the progress, including the number of `rows` since the beginning of this run.
    pub(super) fn show(&self, so_far: &Imported, rows: u64) {
        let (imported, rejected) = (so_far.imported(), so_far.rejected);
        let rate = rows / u64::max(self.0.elapsed().as_secs(), 1);
        self.0.set_message(format!(
            "{imported} imported, {rejected} rejected, {rate} rows/s"
        ));
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
