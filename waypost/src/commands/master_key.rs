//! `waypost master-key`: replaces the master key while the system runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use event_log::{EventLog, Keyring, MasterKeyFiles, Stage};
use serde_json::json;
use service::settings::{CommonSettings, seconds};

use super::backup::Bar;
use super::{print, read_input};
use crate::Failure;
use crate::system::LogAccess;

/// The master key, which protects all sealed data.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MasterKey {
    /// Rotate the master key while the system runs.
    Rotate(Rotate),
}

/// Rotate the master key while the system runs.
///
/// Wraps every owner's key by the new key. Afterwards the old one opens nothing of this system any
/// more, only earlier backups. If it is interrupted, run it again.
///
/// A key under `WAYPOST_HOME` is created and replaced by this command. A key that is given by
/// `WAYPOST_MASTER_KEY` needs two runs. The first has the old key in that variable and the new one
/// in --new-key; after it either key works. Then give the services the new key. The second run,
/// with the new key in the variable, locks the old one out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints {\"rotated\", \"finished\", \"oldKey\"?}: how many owners' keys are wrapped by the new key, \
whether the old one is locked out, and where it is kept.

Examples:
  waypost master-key rotate
  head -c 32 /dev/urandom | base64 > new.key
  WAYPOST_MASTER_KEY=$OLD waypost master-key rotate --new-key new.key
  WAYPOST_MASTER_KEY=$NEW waypost master-key rotate")]
pub(crate) struct Rotate {
    /// A file with the new key, 32 bytes in base64 (`-`: standard input), if the current one is
    /// given by `WAYPOST_MASTER_KEY`.
    #[arg(long, value_name = "FILE")]
    new_key: Option<PathBuf>,
    /// How long to wait for running services to learn of the new key before locking the old one
    /// out.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    settle_seconds: Duration,
    #[command(flatten)]
    log: LogAccess,
}

/// The result of a run.
struct Run {
    rotated: u64,
    finished: bool,
    old_key: Option<PathBuf>,
}

impl MasterKey {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let Self::Rotate(rotate) = self;
        let run = match MasterKeyFiles::of(&common.home) {
            Some(files) => rotate.in_files(common, &files).await?,
            None => rotate.given(common).await?,
        };
        let mut answer = json!({ "rotated": run.rotated, "finished": run.finished });
        if let Some(path) = run.old_key {
            answer["oldKey"] = json!(path);
        }
        print(&answer)
    }
}

impl Rotate {
    async fn in_files(
        &self,
        common: &CommonSettings,
        files: &MasterKeyFiles,
    ) -> Result<Run, Failure> {
        if self.new_key.is_some() {
            return Err(
                "this command creates the new key itself: --new-key is only for a key given by \
                 WAYPOST_MASTER_KEY"
                    .into(),
            );
        }
        let mut log = self
            .log
            .open_with(common, Keyring::load(&common.home)?)
            .await?;
        let mut old_key = None;
        let replaced = files.next()?.is_none() && log.rotation().stage().await? == Stage::Ending;
        if !replaced {
            let new = files.next_or_make()?;
            begin(&log, &new).await?;
            // From here on a start finds the new key.
            let kept = files.replace()?;
            eprintln!(
                "The new key is in place; the old one is kept as {}.",
                kept.display()
            );
            log = self
                .log
                .open_with(common, Keyring::load(&common.home)?)
                .await?;
            old_key = Some(kept);
        }
        let rotated = self.end(&log).await?;
        eprintln!(
            "The old key opens backups from before, and nothing else: keep it with them, or \
             delete it with them. Take a backup now."
        );
        Ok(Run {
            rotated,
            finished: true,
            old_key,
        })
    }

    async fn given(&self, common: &CommonSettings) -> Result<Run, Failure> {
        let log = self
            .log
            .open_with(common, Keyring::load(&common.home)?)
            .await?;
        let stage = log.rotation().stage().await?;
        let new = self.new_key.as_deref().map(read_key).transpose()?;
        let run = match (new, stage) {
            (Some(new), Stage::None | Stage::Begun) => {
                let rotated = begin(&log, &new).await?;
                eprintln!(
                    "Both keys work now. Give the new one to every service as WAYPOST_MASTER_KEY, \
                     then run this again with it to lock the old one out."
                );
                Run {
                    rotated,
                    finished: false,
                    old_key: None,
                }
            }
            (None, Stage::Ending) => Run {
                rotated: self.end(&log).await?,
                finished: true,
                old_key: None,
            },
            (None, _) => {
                return Err(
                    "the master key is given by WAYPOST_MASTER_KEY: name a file with the \
                            new one by --new-key"
                        .into(),
                );
            }
            (Some(_), Stage::Ending) => {
                return Err(
                    "a rotation is in progress, and WAYPOST_MASTER_KEY is its new key: run this \
                     again without --new-key to finish it"
                        .into(),
                );
            }
        };
        Ok(run)
    }

    /// Locks the old key out, once all running services have had time to learn of the new one.
    async fn end(&self, log: &EventLog) -> Result<u64, Failure> {
        let seconds = self.settle_seconds.as_secs_f64();
        eprintln!("Waiting {seconds} s until every running service knows the new key");
        tokio::time::sleep(self.settle_seconds).await;
        let bar = Bar::new();
        let tell = |done, of| bar.at("keys checked", done, of);
        let rotated = log.rotation().end(&tell).await?;
        bar.end();
        Ok(rotated)
    }
}

/// Begins or continues; returns how many keys are wrapped by the new one.
async fn begin(log: &EventLog, new: &Keyring) -> Result<u64, Failure> {
    let bar = Bar::new();
    let rotation = log.rotation();
    rotation.begin(new).await?;
    eprintln!("Wrapping owners' keys by the new master key");
    let tell = |done, of| bar.at("keys wrapped", done, of);
    let wrapped = rotation.wrap_all(&tell).await?;
    bar.end();
    Ok(wrapped)
}

fn read_key(path: &Path) -> Result<Keyring, Failure> {
    let text = read_input(path)?;
    Ok(Keyring::parse_master(&text, &path.display().to_string())?)
}
