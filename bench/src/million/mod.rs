//! A million of everything in one organization, with a hundred small ones beside it: file imports
//! and exports, each over the best the machine could do in the same run, and lists.

mod exports;
mod files;
mod imports;
mod lists;

use crate::report::Report;
use crate::system::System;

/// Number of organizations beside the large one, and of records of each kind in each of them.
const BESIDE: usize = 100;
const RECORDS_BESIDE: usize = 100;

/// All kinds of records.
const KINDS: [&str; 6] = [
    "contacts",
    "companies",
    "deals",
    "orders",
    "leads",
    "clients",
];

/// Imports `rows` records of each kind and exports them again.
pub(crate) async fn measure(rows: usize, rounds: usize, report: &mut Report) {
    acknowledged(rows, report).await;
    let system = System::start(&["waypost"]).await;
    let (org, key) = system.organization().await;
    imports::small_organizations(&system).await;
    imports::visible(&system, (&org, &key), rows, report).await;
    system.tidy_database().await;
    lists::measure(&system, &key, report).await;
    exports::measure(&system, &key, rows, rounds, report).await;
}

/// Imports with only command-api following the log.
async fn acknowledged(rows: usize, report: &mut Report) {
    let system = System::start(&["command-api"]).await;
    imports::acknowledged(&system, rows, report).await;
}

fn rate(count: usize, time: std::time::Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are small")]
    let count = count as f64;
    count / time.as_secs_f64()
}
