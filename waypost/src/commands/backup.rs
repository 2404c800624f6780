//! `waypost backup`: copies the log into a folder, and checks such a copy.

use std::path::{Path, PathBuf};

use event_log::backup::{self, Manifest, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::Log;
use serde_json::{Value, json};
use service::settings::CommonSettings;
use service::{Clock as _, SystemClock};

use super::print;
use crate::Failure;
use crate::system::LogAccess;

/// Copy the log and the owners' wrapped keys into a new folder while the system runs.
///
/// The master key is not in it: keep the home's `secrets` apart. Without that key nothing personal
/// or secret can be read, and nothing be restored.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Prints {\"events\", \"locations\", \"deliveries\", \"keys\", \"bytes\", \"position\"}.

Examples:
  waypost backup /backups/monday
  waypost backup verify /backups/monday"
)]
pub(crate) struct Backup {
    /// A new or empty folder.
    #[arg(required = true, value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    check: Option<Check>,
    #[command(flatten)]
    log: LogAccess,
}

/// What else can be done with a backup.
#[derive(Debug, clap::Subcommand)]
enum Check {
    /// Check that nothing in a backup was lost, changed, duplicated or moved; names the first place
    /// that is wrong. Needs no running system.
    Verify {
        /// The backup's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Backup {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let bar = Bar::new();
        if let Some(Check::Verify { folder }) = self.check {
            let manifest = backup::verify(&folder, &|progress| bar.show(progress))?;
            bar.end();
            let mut answer = counts(&manifest);
            answer["takenAt"] = json!(manifest.taken_at);
            return print(&answer);
        }
        let folder = self.folder.ok_or("the backup's folder is required")?;
        let log = self.log.open(common).await?;
        let tell = |progress| bar.show(progress);
        let manifest = log.back_up(&folder, SystemClock.now(), &tell).await?;
        bar.end();
        remind(common, &folder);
        print(&counts(&manifest))
    }
}

fn remind(common: &CommonSettings, folder: &Path) {
    let (folder, home) = (folder.display(), common.home.display());
    eprintln!(
        "{folder} holds the log and the owners' wrapped keys, but not the master key: keep \
         {home}/secrets/master.key (or WAYPOST_MASTER_KEY) apart from it, and safe."
    );
}

/// The contents of a backup in numbers.
pub(super) fn counts(manifest: &Manifest) -> Value {
    json!({
        "events": manifest.messages(Log::Events),
        "locations": manifest.messages(Log::Locations),
        "deliveries": manifest.messages(Log::Deliveries),
        "keys": manifest.keys(),
        "bytes": manifest.bytes(),
        "position": manifest.position(Log::Events).to_string(),
    })
}

/// A progress bar over the log's sequences; without a terminal nothing is drawn.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:40} {percent}% {msg} (ends in {eta})");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(0).with_style(style))
    }

    pub(super) fn show(&self, progress: Progress) {
        self.at(progress.stream, progress.done, progress.of);
    }

    /// Shows the progress of this part of the work.
    pub(super) fn at(&self, doing: &'static str, done: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(done);
        self.0.set_message(doing);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
