//! `make faults`: Waypost under faults.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use faults::{Deed, Options};

/// Injects faults into a Waypost of its own under load, and compares what clients received with
/// the log.
#[derive(Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
struct Arguments {
    /// How long faults are injected, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed that load and faults are derived from; the clock's by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of NATS servers: 1, or 3 that keep three copies.
    #[arg(long, default_value_t = 1)]
    nats: usize,
    /// Give each server a file system, so that power can fail; needs root and xfsprogs.
    #[arg(long)]
    disks: bool,
    /// Give each service a clock that can jump; needs libfaketime.
    #[arg(long)]
    clocks: bool,
    /// Folder of another version's programs, to which services are upgraded and back.
    #[arg(long, value_name = "FOLDER")]
    other: Option<PathBuf>,
    /// Run without strangers and a hostile tenant.
    #[arg(long)]
    friendly: bool,
    /// Inject only this fault; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<Deed>,
    /// Do not inject this fault; may be given several times.
    #[arg(long, value_name = "NAME")]
    without: Vec<Deed>,
    /// Inject faults only in these rounds, numbered as in run.json.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rounds: Vec<u32>,
    /// If something is wrong, repeat the run with fewer and fewer rounds that still show it.
    #[arg(long)]
    shrink: bool,
    /// Folder in which the run's record and all logs are kept, whatever the result.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    #[expect(clippy::disallowed_methods, reason = "whichever seed will do")]
    let by_clock = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    };
    let options = Options {
        seconds: arguments.seconds,
        seed: arguments.seed.unwrap_or_else(by_clock),
        nats: arguments.nats,
        hostile: !arguments.friendly,
        disks: arguments.disks,
        clocks: arguments.clocks,
        deeds: Deed::choose(&arguments.only, &arguments.without),
        rounds: (!arguments.rounds.is_empty()).then(|| arguments.rounds.into_iter().collect()),
        other: arguments.other,
        record: arguments.record,
    };
    if Deed::possible(&options).is_empty() {
        eprintln!("Nothing is left to do: so long a run on so many servers can do none of these.");
        return ExitCode::from(2);
    }
    let disks = options.disks.then(faults::missing_for_disks).flatten();
    let clocks = options.clocks.then(faults::missing_for_clocks).flatten();
    for (name, missing) in [("disks", disks), ("clocks", clocks)] {
        if let Some(missing) = missing {
            eprintln!("--{name} cannot be had: {missing}.");
            return ExitCode::from(2);
        }
    }
    println!("SEED={}", options.seed);
    let report = if arguments.shrink {
        Box::pin(faults::shrink(&options)).await
    } else {
        Box::pin(faults::run(&options)).await
    };
    println!("{report}");
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
