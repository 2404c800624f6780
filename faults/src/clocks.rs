//! The clocks of services, which can be set.

use std::path::{Path, PathBuf};

/// Where Debian's package `libfaketime` puts the library that replaces the system's clock.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A clock for each service, kept in a file of its own.
pub(crate) struct Clocks {
    folder: PathBuf,
}

impl Clocks {
    /// Creates correct clocks, kept in a folder.
    pub(crate) fn right(folder: &Path, services: usize) -> Self {
        let clocks = Self {
            folder: folder.to_owned(),
        };
        for nth in 0..services {
            clocks.set(nth, 0);
        }
        clocks
    }

    /// Settings that make a service use its own clock.
    pub(crate) fn settings(&self, nth: usize) -> [(&'static str, String); 5] {
        let library = library().expect("libfaketime");
        [
            ("LD_PRELOAD", library.display().to_string()),
            (
                "FAKETIME_TIMESTAMP_FILE",
                self.file(nth).display().to_string(),
            ),
            // Reread every second.
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            // Only the time of day is wrong; durations and file times are not.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// Sets a service's clock the given number of seconds ahead, or behind if negative.
    pub(crate) fn set(&self, nth: usize, seconds: i64) {
        let (file, draft) = (self.file(nth), self.folder.join("clock.draft"));
        std::fs::write(&draft, format!("{seconds:+}\n")).expect("a file");
        std::fs::rename(draft, file).expect("a file");
    }

    fn file(&self, nth: usize) -> PathBuf {
        self.folder.join(format!("clock-{nth}"))
    }
}

/// Returns what this machine lacks for clocks, if anything.
pub fn missing_for_clocks() -> Option<String> {
    let missing = "there is no libfaketime (Debian has it in the package libfaketime)";
    library().is_none().then(|| missing.to_owned())
}

fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = folders.map(|folder| folder.path().join(LIBRARY));
    libraries.find(|library| library.exists())
}
