//! `waypost import`: records from a file, with a progress bar and a file of rejects.

mod checkpoint;
mod dry_run;
mod mapping;
mod progress;
mod rejects;
mod rows;
mod run;
mod source;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use command_api::records::{self, Import as RecordImport, Imported, Rejected};
use command_api::{Commands, Origin};
use domain::record::Kind;
use serde_json::json;
use service::settings::CommonSettings;

use self::checkpoint::{Checkpoint, Subject};
use self::mapping::Named;
use self::progress::Progress;
use self::rejects::Rejects;
use self::rows::Table;
use self::run::Run;
use super::print;
use crate::Failure;
use crate::system::{LogAccess, organization};

/// Import records from a file. Importing the same file again changes nothing; after an interruption
/// the same command continues where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints {\"imported\", \"rejected\", \"rejectsFile\"?, \"position\", \"dryRun\"?}. While it runs, FILE.import.json
holds its progress.

Examples:
  waypost import --org ORG contacts contacts.csv
  generate | waypost import --org ORG contacts -
  waypost import --org ORG --dry-run --map \"E-Mail=email\" --map \"Notes=\" contacts list.csv")]
pub(crate) struct Import {
    /// The organization they belong to.
    #[arg(long)]
    org: String,
    /// Their kind, such as `contacts`.
    #[arg(value_parser = kind)]
    kind: Kind,
    /// A `.csv` or `.ndjson` file, also packed as `.gz` or `.zst`; `-` for standard input.
    file: PathBuf,
    /// Format of the file if its name does not show it; that of standard input is detected.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The field of a column that is named otherwise; without a field, the column is left out.
    /// Columns of HubSpot's and Salesforce's exports are known without it.
    #[arg(long = "map", value_name = "COLUMN=FIELD", value_parser = mapping::named)]
    named: Vec<Named>,
    /// Import nothing, only report what would be rejected.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    log: LogAccess,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A header row of field names, then one record per row; separated by commas, semicolons or
    /// tabs, as in the header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

fn kind(name: &str) -> Result<Kind, String> {
    let known = || {
        Kind::ALL
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    Kind::parse(name).ok_or_else(|| format!("unknown kind of record; available: {}", known()))
}

impl Import {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let (format, progress) = (self.format()?, Progress::of(&self.file));
        let table = Table::open(&self.file, format, self.kind, &self.named, progress.clone())?;
        let rejects = Rejects::beside(&self.file);
        let digest = digest_of(&self.file)?;
        let checkpoint = digest.as_deref().map(|digest| self.checkpoint(digest));
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        if self.dry_run {
            return dry_run::run(table.rows(None)?, rejects, &progress).await;
        }
        let mut run = Run::new(checkpoint, rejects);
        let from = run.go_on(commands.log());
        let (rows, outcome) = table.rows(from)?.split();
        let import = RecordImport {
            commands,
            origin: Origin::operator(),
            org,
            kind: self.kind,
            source: run.source().or(digest),
        };
        let told = |so_far: &Imported, rejected: &[Rejected]| run.tell(so_far, rejected, &progress);
        let imported = records::import(import, rows, told).await;
        progress.end();
        run.end(imported, outcome)
    }

    fn checkpoint(&self, digest: &[u8]) -> Checkpoint {
        let subject = Subject {
            file: hex(digest),
            org: self.org.clone(),
            kind: self.kind.name().to_owned(),
            named: self.named.iter().map(ToString::to_string).collect(),
        };
        Checkpoint::beside(&self.file, subject)
    }

    /// The format of the file; `None` if it shows only when the file is read.
    fn format(&self) -> Result<Option<Format>, Failure> {
        let extension = |path: &Path| path.extension()?.to_str().map(str::to_owned);
        let extension = match extension(&self.file).as_deref() {
            Some("gz" | "zst") => extension(&self.file.with_extension("")),
            _ => extension(&self.file),
        };
        match (self.format, extension.as_deref()) {
            (Some(format), _) => Ok(Some(format)),
            (None, Some("csv")) => Ok(Some(Format::Csv)),
            (None, Some("ndjson" | "jsonl")) => Ok(Some(Format::Ndjson)),
            (None, _) if self.file == Path::new("-") => Ok(None),
            (None, _) => {
                let file = self.file.display();
                Err(format!("{file}: unknown format: give --format csv or --format ndjson").into())
            }
        }
    }
}

/// The digest that identifies a file; `None` for what can be read only once.
fn digest_of(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    Ok(Some(source::digest_of(std::fs::File::open(path)?)?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that [`hex`] has written.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    bytes.collect()
}

fn report(imported: &Imported, rejects: Rejects, is_dry_run: bool) -> Result<(), Failure> {
    let mut answer = json!({ "imported": imported.imported(), "rejected": imported.rejected });
    if let Some(path) = rejects.finish()? {
        answer["rejectsFile"] = json!(path);
    }
    answer["position"] = json!(imported.position.map(|position| position.to_string()));
    if is_dry_run {
        answer["dryRun"] = json!(true);
    }
    print(&answer)
}
