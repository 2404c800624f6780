//! Gain of two and four processes of each service on one machine, over one of each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::EventLog;
use futures::future::join_all;
use schemas::Log;
use sqlx::{Connection as _, PgConnection};

use crate::accept;
use crate::deliveries;
use crate::export::import_contacts;
use crate::load;
use crate::rebuild;
use crate::report::Report;
use crate::runs;
use crate::system::{Process, System, until_ready};

const COUNTS: [usize; 2] = [2, 4];
/// Connections of all clients together.
const CONNECTIONS: usize = 256;
const READERS: usize = 64;
const CONTACTS: usize = 20_000;
const ENDPOINTS: usize = 100;
const EACH: usize = 200;

/// Rates per second, by name.
type Rates = BTreeMap<&'static str, f64>;

/// Measures one of each service and several of each alternately.
pub(crate) async fn measure(time: Duration, rounds: usize, report: &mut Report) {
    let (mut ones, mut several) = (Vec::new(), BTreeMap::<usize, Vec<Rates>>::new());
    for _ in 0..rounds {
        ones.push(rates(1, time).await);
        for count in COUNTS {
            several
                .entry(count)
                .or_default()
                .push(rates(count, time).await);
        }
    }
    for what in ones.first().into_iter().flat_map(BTreeMap::keys) {
        for (count, of_several) in &several {
            let pairs = of_several.iter().zip(&ones);
            let pairs: Vec<_> = pairs
                .map(|(several, one)| (several[what], one[what]))
                .collect();
            let what = format!("{what}, {count} processes of each service, over one");
            report.rate(&what, &pairs, "");
        }
    }
}

/// The rates of `count` processes of each service, each service measured alone as far as possible.
async fn rates(count: usize, time: Duration) -> Rates {
    let mut system = System::start(&["command-api"]).await;
    let more = start(&system, "command-api", count - 1).await;
    let mut addrs = vec![system.addr()];
    addrs.extend(more.iter().map(|process| process.addr));
    for process in more {
        system.keep(process);
    }
    let mut rates = Rates::new();

    let (_, keys) = accept::prepare(&system).await;
    let requests = accept::requests(&keys);
    let second = Duration::from_secs(1);
    let (before, _) = loaded(&addrs, CONNECTIONS, second, "202", &requests).await;
    let (accepted, rate) = loaded(&addrs, CONNECTIONS, time, "202", &requests).await;
    rates.insert("triggers accepted", rate);

    let log = system.log().await;
    let work = (before + accepted, runs::ONE_STEP);
    let ended = runs::ended(&system, &log, work, count).await;
    rates.insert("runs of one step ended", ended);

    let (org, admin) = system.organization().await;
    import_contacts(&system, &org, CONTACTS).await;
    let projected = projected(&mut system, &log, count).await;
    rates.insert("events projected", projected);

    let readers = start(&system, "query-api", count).await;
    let addrs: Vec<_> = readers.iter().map(|process| process.addr).collect();
    system.tidy_database().await;
    let record = |nth| load::get(&format!("/api/v1/records/contacts/c{nth}"), &admin, "");
    let records = Arc::new((0..CONTACTS).map(record).collect());
    let (_, rate) = loaded(&addrs, READERS, time, "200", &records).await;
    rates.insert("records read", rate);

    let runners = start(&system, "workflow-runner", count).await;
    let delivered = deliveries::delivered(&system, EACH, ENDPOINTS).await;
    rates.insert("webhooks delivered to 100 endpoints", delivered.rate);
    drop((runners, readers));
    rates
}

/// Starts processes of a service and waits until they are ready.
async fn start(system: &System, service: &str, count: usize) -> Vec<Process> {
    let processes: Vec<_> = (0..count).map(|_| system.run(service)).collect();
    for process in &processes {
        until_ready(process.addr).await;
    }
    processes
}

/// Requests answered with the wanted status by all together, and how many per second.
async fn loaded(
    addrs: &[SocketAddr],
    connections: usize,
    time: Duration,
    status: &'static str,
    requests: &Arc<Vec<Vec<u8>>>,
) -> (u64, f64) {
    let loads = addrs.iter().map(|addr| {
        load::run(
            *addr,
            connections / addrs.len(),
            time,
            status,
            requests.clone(),
        )
    });
    let outcomes = join_all(loads).await;
    assert!(
        outcomes.iter().all(|outcome| outcome.other == 0),
        "all are answered as wanted"
    );
    let answered = outcomes.iter().map(|outcome| outcome.answered).sum();
    (answered, outcomes.iter().map(load::Outcome::rate).sum())
}

/// Starts projectors on a log that was not read before; returns the events per second until they
/// have caught up.
async fn projected(system: &mut System, log: &EventLog, count: usize) -> f64 {
    let end = log.end(Log::Events).await.expect("an end").sequence();
    let end = usize::try_from(end).expect("not that many");
    let database = PgConnection::connect(system.servers.database_url());
    let mut database = database.await.expect("Postgres");
    let began = Instant::now();
    for _ in 0..count {
        let projector = system.run("projector");
        system.keep(projector);
    }
    rebuild::caught_up(&mut database, end).await;
    rebuild::rate(end, began.elapsed())
}
