//! `waypost import`: records from a file, with a progress bar and a file of rejects.

mod dry_run;
mod mapping;
mod progress;
mod rejects;
mod rows;

use std::path::{Path, PathBuf};

use command_api::records::{self, Import as RecordImport, Imported, Rejected};
use command_api::{Commands, Origin};
use domain::record::Kind;
use serde_json::json;
use service::settings::CommonSettings;

use self::mapping::Named;
use self::progress::Progress;
use self::rejects::Rejects;
use self::rows::Rows;
use super::print;
use crate::Failure;
use crate::system::{LogAccess, organization};

/// Import records from a file. The same file again changes nothing where its rows have ids.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints {\"imported\", \"rejected\", \"rejectsFile\"?, \"position\", \"dryRun\"?}.

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
    /// A `.csv` or `.ndjson` file, `-` for standard input.
    file: PathBuf,
    /// Format of the file if its name does not tell; standard input is detected.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The field of a column that is named otherwise; without a field, the column is left out.
    /// Columns of HubSpot's and Salesforce's exports are known without it.
    #[arg(long = "map", value_name = "COLUMN=FIELD", value_parser = mapping::named)]
    named: Vec<Named>,
    /// Only look what would be rejected.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    log: LogAccess,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A header row of field names, then one record per row.
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
        let format = self.format()?;
        let progress = Progress::of(&self.file);
        let rows = Rows::open(&self.file, format, self.kind, &self.named, progress.clone())?;
        let mut rejects = Rejects::beside(&self.file);
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        let origin = Origin::operator();
        let import = RecordImport {
            commands: &commands,
            origin: &origin,
            org: &org,
            kind: self.kind,
        };
        let mut unwritable = None;
        let on_chunk = |so_far: &Imported, rejected: &[Rejected]| {
            progress.show(so_far);
            unwritable = unwritable.take().or(rejects.add(rejected).err());
        };
        let imported = if self.dry_run {
            dry_run::check(rows.stream(), on_chunk).await
        } else {
            records::import(import, rows.stream(), on_chunk).await?
        };
        progress.end();
        if let Some(error) = unwritable {
            return Err(error.into());
        }
        report(&imported, rejects, self.dry_run)
    }

    /// What the file holds; `None` where it shows only when it is read.
    fn format(&self) -> Result<Option<Format>, Failure> {
        let extension = self
            .file
            .extension()
            .and_then(|extension| extension.to_str());
        match (self.format, extension) {
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
