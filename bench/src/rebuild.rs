//! Catching up and rebuilding, over COPY of the same rows into the same indexed tables; and the
//! effect of a rebuild on reads.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::large::fill::{EVENTS_EACH, Fill, id, is_contact};
use crate::large::{DEFINITION, peak};
use crate::load;
use crate::report::Report;
use crate::system::{System, until_ready};

/// The projections that the events are for, with their share in tenths.
const SHARES: [(&str, usize); 4] = [("contacts", 4), ("orders", 2), ("leads", 1), ("runs", 3)];
const CONNECTIONS: usize = 4;

/// Fills an empty log with the given number of mixed events.
pub(crate) async fn measure(system: &System, events: usize, time: Duration, report: &mut Report) {
    let (org, key) = system.organization().await;
    let definition = system.write("w.json", DEFINITION);
    system
        .waypost(&["workflow", "put", "--org", &org, "--id", "w", &definition])
        .await;
    let fill = Fill::open(system, &org, "w").await;
    fill.aggregates(events / EVENTS_EACH).await;
    let mut database = PgConnection::connect(system.servers.database_url())
        .await
        .expect("Postgres");

    let projector = system.run("projector");
    let started = Instant::now();
    caught_up(&mut database, events).await;
    let caught_up = rate(events, started.elapsed());
    report.memory("the projector at most", peak(projector.pid()));
    let (rows, copied) = copy(&mut database).await;
    let copied = rate(rows, copied);
    report.rate(
        "events caught up with, over COPY of the rows",
        &[(caught_up, copied)],
        "0.5",
    );

    let names = SHARES.map(|(name, _)| name);
    let (took, memory) = rebuild(system, &names).await;
    report.rate(
        "events rebuilt, over COPY of the rows",
        &[(rate(events, took), copied)],
        "0.5",
    );
    report.memory("a rebuild at most", memory);
    for (name, tenths) in SHARES {
        let (took, _) = rebuild(system, &[name]).await;
        let what = format!("events of {name} alone, the whole log being read");
        let own = rate(events / 10 * tenths, took);
        report.rate(&what, &[(own, copied)], "");
    }
    for name in names {
        let verified = system.waypost(&["projection", "verify", name]).await;
        assert_eq!(verified["differences"], 0, "{verified}");
    }
    reads(system, &key, time, report).await;
}

pub(crate) fn rate(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).expect("not that many");
    f64::from(count) / time.as_secs_f64()
}

pub(crate) async fn caught_up(database: &mut PgConnection, events: usize) {
    let events = i64::try_from(events).expect("not that many");
    loop {
        let slowest: Option<i64> = sqlx::query_scalar(
            "SELECT min(sequence) FROM projection_checkpoints WHERE log = 'events'",
        )
        .fetch_one(&mut *database)
        .await
        .expect("an answer");
        if slowest.is_some_and(|slowest| slowest >= events) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Copies the projected rows into equal tables, with all indexes; returns how many, and how long it
/// took.
async fn copy(database: &mut PgConnection) -> (usize, Duration) {
    let (mut rows, mut took) = (0, Duration::ZERO);
    run(database, "CREATE SCHEMA ceiling".to_owned()).await;
    for (table, _) in SHARES {
        let like = format!("CREATE TABLE ceiling.{table} (LIKE {table} INCLUDING ALL)");
        run(database, like).await;
        let mut bytes = Vec::new();
        let out = format!("COPY {table} TO STDOUT (FORMAT binary)");
        let mut out = database.copy_out_raw(&out).await.expect("a copy");
        while let Some(part) = out.try_next().await.expect("rows") {
            bytes.extend_from_slice(&part);
        }
        drop(out);
        let started = Instant::now();
        let into = format!("COPY ceiling.{table} FROM STDIN (FORMAT binary)");
        let mut into = database.copy_in_raw(&into).await.expect("a copy");
        for part in bytes.chunks(64 * 1024) {
            into.send(part).await.expect("sending");
        }
        let copied = into.finish().await.expect("rows");
        rows += usize::try_from(copied).expect("not that many");
        took += started.elapsed();
    }
    run(database, "DROP SCHEMA ceiling CASCADE".to_owned()).await;
    (rows, took)
}

async fn run(database: &mut PgConnection, sql: String) {
    database.execute(AssertSqlSafe(sql)).await.expect("done");
}

/// Rebuilds projections; returns how long it took, and the peak memory.
async fn rebuild(system: &System, names: &[&str]) -> (Duration, u64) {
    let mut command = system.command("waypost");
    command
        .args(["projection", "rebuild"])
        .args(names)
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().expect("waypost");
    let mut held = 0;
    loop {
        if let Some(status) = child.try_wait().expect("a status") {
            assert!(status.success(), "{names:?} were not rebuilt");
            return (started.elapsed(), held);
        }
        held = held.max(peak(child.id()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The latency of reads, alone and while their projection is rebuilt repeatedly.
async fn reads(system: &System, key: &str, time: Duration, report: &mut Report) {
    let queries = system.run("query-api");
    until_ready(queries.addr).await;
    // The first contacts of the log.
    let contacts = (0..1_000).filter(|number| is_contact(*number));
    let requests: Vec<_> = contacts
        .map(|number| {
            let path = format!("/api/v1/records/contacts/{}", id(number).as_str());
            load::get(&path, key, "")
        })
        .collect();
    let requests = Arc::new(requests);
    let load = || load::run(queries.addr, CONNECTIONS, time, "200", requests.clone());
    load().await;
    let alone = load().await;
    let over = AtomicBool::new(false);
    let rebuilding = async {
        while !over.load(Ordering::Relaxed) {
            rebuild(system, &["contacts"]).await;
        }
    };
    let reading = async {
        let outcome = load().await;
        over.store(true, Ordering::Relaxed);
        outcome
    };
    let (during, ()) = tokio::join!(reading, rebuilding);
    assert_eq!(
        (alone.other, during.other),
        (0, 0),
        "every read finds its record"
    );
    report.time("a read, p99", alone.percentile(99), "");
    let p99 = during.percentile(99);
    report.time("a read during a rebuild, p99", p99, "twice that at most");
}
