//! Waypost under faults.
//!
//! [`run`] starts four services on a NATS and a Postgres of their own, sends commands of every kind
//! as clients do and records each response, while a nemesis kills, pauses and restarts everything
//! there is, delivers twice, and interferes between services and servers. At the end everything is
//! healed, and a checker that knows only the clients' responses and the log reports what was lost,
//! doubled or wrong.
#![expect(
    clippy::expect_used,
    reason = "a run that cannot be set up or healed has failed, and its logs say why"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "what hurts a running system lives by the machine's clock"
)]

mod check;
mod client;
mod clocks;
mod definitions;
mod disk;
mod drain;
mod load;
mod nemesis;
mod network;
mod notes;
mod readers;
mod record;
mod report;
mod restored;
mod servers;
mod settings;
mod shrink;
mod strangers;
mod upload;
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use event_log::{EventLog, Keyring, LogSettings};
use harness::{Shape, System};
use local_servers::TemporaryHome;

pub use clocks::missing_for_clocks;
pub use disk::missing_for_disks;
pub use nemesis::Deed;
pub use report::Report;
pub use shrink::shrink;

use check::{Evidence, Facts};
use client::Client;
use hostile::Dice;
use load::Load;
use nemesis::{Hurt, Nemesis};
use notes::Notes;
use readers::{Heard, Receiver, listen};
use record::{Began, Record, Seen, Watch};
use restored::Restored;
use servers::Servers;
use strangers::Strangers;
use world::World;

/// How long a new cluster may take to choose a leader.
const LEADERLESS: Duration = Duration::from_mins(1);

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long the nemesis injects faults.
    pub seconds: u64,
    /// Seed of the load's and the nemesis' choices.
    pub seed: u64,
    /// NATS servers: 1, or 3 as a cluster.
    pub nats: usize,
    /// Whether strangers and a hostile tenant run beside the load.
    pub hostile: bool,
    /// Whether each server has a file system of its own, which requires root.
    pub disks: bool,
    /// Whether each service has a clock of its own, which requires libfaketime.
    pub clocks: bool,
    /// Deeds allowed to the nemesis, as far as the run has the servers and time for them.
    pub deeds: Vec<Deed>,
    /// The only rounds in which the nemesis does anything; all rounds if `None`.
    pub rounds: Option<BTreeSet<u32>>,
    /// Folder of another version's programs, to which services are upgraded and then taken back.
    pub other: Option<PathBuf>,
    /// Folder that keeps the run's record and logs, whatever the result.
    pub record: Option<PathBuf>,
}

/// Runs load and nemesis, heals, and checks everything against everything.
///
/// # Panics
/// If servers or services cannot be started, or do not come back.
pub async fn run(options: &Options) -> Report {
    let dice = Dice::new(options.seed);
    let home = TemporaryHome::new().expect("a folder");
    let servers = Servers::start(&home, options.nats).await;
    let mut servers = servers.expect("servers");
    if options.disks {
        servers.move_to_disks().await.expect("servers on disks");
    }
    let settings = settings::of(options.nats);
    let database = servers.urls().database.expect("a database");
    let log_settings = settings::log(&servers, options.nats);
    if options.nats > 1 {
        until_it_has_a_leader(&home, &log_settings).await;
    }
    let system = System::start_on(Shape::Four, home, &servers.urls(), &settings).await;
    let hurt = Hurt::come_between(system, servers, options.clocks).await;
    let system = &hurt.system;
    let log = open_log(system, &log_settings).await;
    let receiver = Receiver::start(dice.of("receiver")).await;
    let mut world = World::make(system, receiver.base()).await;
    let mut strangers = None;
    if options.hostile {
        let settled = Strangers::settle(system, &dice).await;
        world.neighbour = Some(settled.neighbour().clone());
        settled.trespasser().clone_into(&mut world.trespasser);
        strangers = Some(settled);
    }
    let mut facts = Facts::open(log.clone()).await;
    facts.advance().await;

    let base = format!("http://{}", system.addr());
    let root = dice.of("traces").throw();
    let load = Arc::new(Load {
        client: Client::new(&base, root, Arc::<Notes>::default()),
        world,
        receiver: receiver.base().to_owned(),
    });
    let sockets = subscribe(&load, &dice);
    let workers = load::start(&load, &dice);
    let crowd = strangers.as_ref().map(Strangers::gather);
    let nemesis_dice = dice.of("nemesis");
    let mut nemesis = Nemesis::new(options, hurt, load.clone(), log.clone(), nemesis_dice);
    let began = Began::now();
    let lag = Watch::begin(began.at, log.clone(), database.clone());
    nemesis
        .rage(began.at + Duration::from_secs(options.seconds))
        .await;
    let raged = began.at.elapsed();

    load.client.end();
    let tally = match (&mut strangers, crowd) {
        (Some(strangers), Some(crowd)) => Some(strangers.leave(crowd).await),
        _ => None,
    };
    let healed = nemesis.heal().await;
    load::end(&load, dice.of("the end"), &nemesis.done, workers).await;
    let (fold, open) = drain::wait(&mut facts, &receiver, &database).await;
    let heard = sockets_at_the_end(sockets, &facts).await;
    let evidence = Evidence {
        client: &load.client,
        world: &load.world,
        facts: &facts,
        fold: &fold,
        arrived: &receiver.arrived(),
        heard: &heard,
        done: &nemesis.done,
        database: &database,
        receiver: receiver.base(),
        strangers: strangers.as_ref(),
        tally: tally.as_deref(),
    };
    let mut findings = check::all(&evidence).await;
    let ready = "everything was ready again";
    findings.judge(ready, healed, "the services", "ready", "not ready in time");
    let quiet = "all got quiet at the end";
    for what in open {
        findings.judge(quiet, false, what, "nothing open", "still open");
    }
    check::verify(&nemesis.system, &mut findings).await;
    if Deed::possible(options).contains(&Deed::AllLost) {
        let restored = Restored {
            servers: &mut nemesis.servers,
            system: &mut nemesis.system,
            log: &log_settings,
            receiver: &receiver,
            database: &database,
            facts: &facts,
        };
        restored.check(&mut findings).await;
    }
    let seen = Seen {
        began,
        raged,
        lag: lag.end(),
    };
    let record = Record::new(options, seen, &evidence, &findings);
    Report::new(options, raged, &evidence, findings).keep(&record, &nemesis.logs())
}

/// Whether every service becomes ready shortly. Waiting longer would end the run if one does not,
/// and lose everything found before.
async fn ready_soon(system: &System) -> bool {
    let soon = Duration::from_secs(3);
    tokio::time::timeout(soon, system.until_ready())
        .await
        .is_ok()
}

async fn open_log(system: &System, settings: &LogSettings) -> EventLog {
    let keyring = Keyring::load(system.home()).expect("the run's keys");
    EventLog::connect(settings, keyring).await.expect("the log")
}

/// Services exit if they cannot create their streams, and a new cluster first elects a leader.
async fn until_it_has_a_leader(home: &TemporaryHome, settings: &LogSettings) {
    let keyring = Keyring::load(home.path()).expect("the run's keys");
    let made = harness::eventually_within(LEADERLESS, "the cluster's leader", async || {
        EventLog::connect(settings, keyring.clone()).await.ok()
    });
    drop(made.await);
}

type Subscription = (Arc<std::sync::Mutex<Heard>>, tokio::task::JoinHandle<()>);

/// Starts subscribers to all channels that can be judged event by event.
fn subscribe(load: &Arc<Load>, dice: &Dice) -> Vec<Subscription> {
    let base = load.client.base();
    let dice = |who: &str, channel: &str| dice.of(&format!("{who} {channel}"));
    let mut subscriptions = Vec::new();
    for org in &load.world.orgs {
        for channel in ["runs", "events"] {
            let key = org.key.clone();
            let (dice, key) = (dice(&org.id, channel), move || key.clone());
            subscriptions.push(listen(base, key, channel, &org.id, dice));
        }
    }
    for (nth, person) in load.world.persons.iter().enumerate() {
        let (who, load) = (person.id.to_string(), load.clone());
        let (dice, token) = (dice(&who, "locations"), move || {
            load.world.persons[nth].token()
        });
        subscriptions.push(listen(base, token, "locations", &who, dice));
    }
    subscriptions
}

/// Waits briefly for subscribers to see the rest, then stops them.
async fn sockets_at_the_end(subscriptions: Vec<Subscription>, facts: &Facts) -> Vec<Heard> {
    const TIMEOUT: Duration = Duration::from_secs(20);
    let begun = Instant::now();
    let heard = |one: &Subscription| {
        let heard = one.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    };
    while begun.elapsed() < TIMEOUT {
        let behind = subscriptions
            .iter()
            .filter(|one| check::is_behind(&heard(one), facts));
        if behind.count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = subscriptions.iter().map(heard).collect();
    for (_, task) in subscriptions {
        task.abort();
    }
    all
}
