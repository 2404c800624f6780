//! `make faults`: Waypost under faults.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use faults::Options;

/// Hurts a Waypost of its own under load, and checks what clients were told against the log.
#[derive(Parser)]
struct Arguments {
    /// How long faults go on.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What load and faults are chosen by; by the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// NATS servers: 1, or 3 that keep three copies.
    #[arg(long, default_value_t = 1)]
    nats: usize,
    /// Without strangers and a hostile tenant beside the load.
    #[arg(long)]
    friendly: bool,
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
    };
    println!("SEED={}", options.seed);
    let report = Box::pin(faults::run(&options)).await;
    println!("{report}");
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
