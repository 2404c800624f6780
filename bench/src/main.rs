//! Waypost against its ceilings: every figure is printed beside the best the machine could do in
//! the same run, because a figure alone says more about the machine than about Waypost.
#![expect(
    clippy::expect_used,
    reason = "a bench that cannot be set up has nothing to say"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "what measures a running system lives by the machine's clock"
)]

mod accept;
mod autogroup;
mod bare_runs;
mod ceiling;
mod deliveries;
mod export;
mod feed;
mod hostile;
mod large;
mod live;
mod load;
mod many;
mod million;
mod million_pages;
mod plain;
mod processes;
mod readable;
mod rebuild;
mod report;
mod runs;
mod system;
mod unguarded;
mod webhook;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ::hostile::Attack;
use clap::Parser;
use tokio::runtime::Runtime;

use report::Report;
use system::System;

/// The variable with the address on which a child of the bench listens in its role.
const ROLE_ADDR: &str = "BENCH_ROLE_ADDR";

/// Measure Waypost against the ceilings of this machine.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  bench --seconds 10 --only accept")]
struct Options {
    /// How long each measurement runs.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Rounds of each pair; the median ratio is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only this part.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Writes that are read back at their position.
    #[arg(long, default_value_t = 10_000)]
    reads: usize,
    /// Events that are delivered by webhook, and of the feed ten times as many.
    #[arg(long, default_value_t = 20_000)]
    events: usize,
    /// Aggregates of the large log, each with five events.
    #[arg(long, default_value_t = 1_000_000)]
    aggregates: usize,
    /// Accounts to start among, as many waiting runs, and a tenth as many circles and open
    /// deliveries.
    #[arg(long, default_value_t = 1_000_000)]
    accounts: usize,
    /// Events that are projected and rebuilt.
    #[arg(long, default_value_t = 1_000_000)]
    projected: usize,
    /// Records of each kind that are imported, exported and listed.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Only this attack of the hostile crowd; may be given several times.
    #[arg(long, value_name = "ATTACK")]
    attack: Vec<Attack>,
    /// Runs as the hostile crowd that this file describes.
    #[arg(long, hide = true, value_name = "FILE")]
    crowd: Option<PathBuf>,
    /// Runs as the plain handler that the bench compares with.
    #[arg(long, hide = true)]
    plain: bool,
    /// Runs as the plain handler of a list's first page, for this organization.
    #[arg(long, hide = true, value_name = "ORG")]
    first_page: Option<String>,
    /// Runs as a trigger without guards, for this organization.
    #[arg(long, hide = true, value_name = "ORG")]
    unguarded: Option<String>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Triggers accepted per second.
    Accept,
    /// On three NATS servers that keep three copies: triggers accepted, runs, the feed, projections.
    Replicated,
    /// From a write's answer to a read that shows it, and reads at a write's position.
    Readable,
    /// From a trigger's acceptance to its webhook's arrival.
    Webhook,
    /// Runs carried out per second.
    Runs,
    /// Webhook deliveries per second.
    Deliveries,
    /// Events of the whole feed per second.
    Feed,
    /// From a position's sending to its arrival on a socket.
    Live,
    /// Rows of an export per second.
    Export,
    /// Events projected and rebuilt per second.
    Rebuild,
    /// Two and four processes of each service over one (minutes; only when named).
    Processes,
    /// Pages of lists of a million orders, runs and deliveries (minutes; only when named).
    Pages,
    /// An ordinary tenant among strangers and bad neighbours.
    Hostile,
    /// A million of each kind of record in, and out again (minutes; only when named).
    Million,
    /// Memory, restarts and latency on a log of millions of events (minutes; only when named).
    Large,
    /// Memory and restarts among a million accounts, circles, waiting runs and open deliveries
    /// (minutes; only when named).
    Many,
}

fn main() {
    let options = Options::parse();
    if options.crowd.is_some() {
        give_way();
    }
    // Only the bench that measures switches it off, not its children.
    let _off = std::env::var(ROLE_ADDR)
        .is_err()
        .then(autogroup::Off::switch);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(run(options));
}

/// Leaves the processors to everything else. A low priority alone lets a running thread continue
/// for milliseconds before one that wakes up; the idle class does not. Called before there are
/// threads, which inherit both.
fn give_way() {
    rustix::process::nice(19).expect("a lower priority");
    let this = std::process::id().to_string();
    let mut idle = Command::new("chrt");
    idle.args(["--idle", "--pid", "0", &this]);
    if !idle.status().is_ok_and(|status| status.success()) {
        eprintln!("without chrt, the crowd takes a part of the processors' time");
    }
}

async fn run(options: Options) {
    // A second provider is no fault: everything in this process uses the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if let Ok(addr) = std::env::var(ROLE_ADDR) {
        let addr = addr.parse().expect("an address");
        if options.plain {
            plain::serve(addr).await;
        } else if let Some(org) = &options.first_page {
            million_pages::serve_first_page(addr, org).await;
        } else if let Some(org) = &options.unguarded {
            unguarded::serve(addr, org).await;
        } else if let Some(spec) = &options.crowd {
            hostile::serve(addr, spec).await;
        }
        return;
    }
    let wanted = |part| options.only.is_none_or(|only| only == part);
    let time = Duration::from_secs(options.seconds);
    let mut report = Report::default();
    if wanted(Part::Accept) {
        let system = System::start(&["command-api"]).await;
        accept::measure(&system, time, options.rounds, &mut report).await;
    }
    if wanted(Part::Replicated) {
        Box::pin(replicated(&options, time, &mut report)).await;
    }
    if wanted(Part::Readable) {
        let system = System::start(&["waypost"]).await;
        readable::measure(&system, time, options.reads, &mut report).await;
    }
    if wanted(Part::Runs) {
        let system = System::start(&["command-api"]).await;
        runs::measure(&system, time, &mut report).await;
    }
    if wanted(Part::Deliveries) {
        let system = System::start(&["waypost"]).await;
        deliveries::measure(&system, time, options.events, &mut report).await;
    }
    if wanted(Part::Feed) {
        let system = System::start(&["waypost"]).await;
        feed::measure(&system, options.rounds, options.events * 10, &mut report).await;
    }
    if wanted(Part::Webhook) {
        let system = System::start(&["waypost"]).await;
        webhook::measure(&system, time, &mut report).await;
    }
    if wanted(Part::Live) {
        let system = System::start(&["waypost"]).await;
        live::measure(&system, time, &mut report).await;
    }
    if wanted(Part::Export) {
        let system = System::start(&["waypost"]).await;
        export::measure(&system, options.rounds, &mut report).await;
    }
    if wanted(Part::Hostile) {
        let system = System::start(&["waypost"]).await;
        hostile::measure(
            &system,
            (time, options.rounds),
            &options.attack,
            &mut report,
        )
        .await;
    }
    if wanted(Part::Rebuild) {
        let system = System::start(&[]).await;
        rebuild::measure(&system, options.projected, time, &mut report).await;
    }
    if options.only == Some(Part::Million) {
        million::measure(options.rows, options.rounds, &mut report).await;
    }
    if options.only == Some(Part::Pages) {
        let sample = million_pages::Sample {
            time,
            rounds: options.rounds,
        };
        million_pages::measure(options.rows, sample, &mut report).await;
    }
    if options.only == Some(Part::Processes) {
        processes::measure(time, options.rounds, &mut report).await;
    }
    if options.only == Some(Part::Large) {
        let mut system = System::start(&[]).await;
        large::measure(&mut system, options.aggregates, &mut report).await;
    }
    if options.only == Some(Part::Many) {
        let mut system = System::start(&[]).await;
        many::measure(&mut system, options.accounts, &mut report).await;
    }
    report.print();
}

/// The measurements on three NATS servers with three copies.
async fn replicated(options: &Options, time: Duration, report: &mut Report) {
    report.within("three copies: ");
    let system = System::start_on(3, &["command-api"]).await;
    accept::measure_replicated(&system, time, options.rounds, report).await;
    drop(system);
    let system = System::start_on(3, &["command-api"]).await;
    runs::measure(&system, time, report).await;
    drop(system);
    let system = System::start_on(3, &["waypost"]).await;
    feed::measure(&system, options.rounds, options.events * 10, report).await;
    drop(system);
    let system = System::start_on(3, &[]).await;
    rebuild::measure(&system, options.projected, time, report).await;
    report.within("");
}
