//! Orders, listed by the projector; their pages are also read while more are imported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{List, Reader, Sample};
use crate::large::caught_up;
use crate::large::fill::Fill;
use crate::report::Report;
use crate::system::System;

/// The status of five of six orders, set by the fill.
const STATUS: &str = "COMPLETED";
/// Number of orders that are imported at once while pages are read.
const BATCH: usize = 20_000;

/// Fills an empty log with `completed` completed orders of one organization, and a fifth as many
/// others, and measures their pages.
pub(super) async fn measure(completed: usize, sample: Sample, report: &mut Report) {
    let system = System::start(&[]).await;
    let orders = completed / 5 * 6;
    let (org, key) = system.organization().await;
    let fill = Fill::open(&system, &org, "w").await;
    let started = Instant::now();
    fill.orders(0, orders).await;
    report.count("orders written", orders, started.elapsed());
    let started = Instant::now();
    let _projector = system.run("projector");
    caught_up(&system).await;
    report.count("orders projected", orders, started.elapsed());
    let queries = system.run("query-api");
    let reader = Reader::ready(&system, queries.addr, &org, &key).await;
    let filter = ("status", STATUS);
    let lists = List::whole_and_part("orders", "/api/v1/orders", filter, orders);
    for list in &lists {
        reader.compare(list, (50, ""), sample, report).await;
    }
    during_import(&reader, &lists, &fill, sample, report).await;
}

/// Measures the slowest responses during an import.
async fn during_import(
    reader: &Reader<'_>,
    lists: &[List; 2],
    fill: &Fill,
    sample: Sample,
    report: &mut Report,
) {
    let over = AtomicBool::new(false);
    let first = lists[0].rows;
    let importing = async {
        let mut next = first;
        while !over.load(Ordering::Relaxed) {
            fill.orders(next, BATCH).await;
            next += BATCH;
        }
        next - first
    };
    let reading = async {
        for list in lists {
            let when = (99, " during an import");
            reader.compare(list, when, sample, report).await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let started = Instant::now();
    let (imported, ()) = tokio::join!(importing, reading);
    report.count("orders written meanwhile", imported, started.elapsed());
}
