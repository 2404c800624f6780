//! The nemesis: kills, holds still and restarts everything there is, and delivers twice.

mod deeds;
mod older;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::EventLog;
use harness::{Program, System};

use crate::load::Load;
use crate::servers::Servers;
use hostile::Dice;
use older::Older;

/// Where a service stands among the system's programs.
const SERVICES: usize = 4;
const RUNNER: &str = "workflow-runner";
/// How long everything may take to be ready once nothing is hurt any more.
const HEALING: Duration = Duration::from_mins(2);

/// What can be hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Service(usize),
    Nats,
    Postgres,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Kill,
    KillTwo,
    KillAgainAndAgain,
    HoldStill,
    Restart,
    Second,
    OlderCheckpoint,
    CutConnections,
}

const DEEDS: &[(usize, Deed)] = &[
    (46, Deed::Kill),
    (14, Deed::KillTwo),
    (8, Deed::KillAgainAndAgain),
    (15, Deed::HoldStill),
    (6, Deed::Restart),
    (7, Deed::Second),
    (6, Deed::OlderCheckpoint),
    (12, Deed::CutConnections),
];
const TARGETS: &[(usize, Target)] = &[
    (4, Target::Service(0)),
    (3, Target::Service(1)),
    (2, Target::Service(2)),
    (4, Target::Service(3)),
    (3, Target::Nats),
    (3, Target::Postgres),
];

/// What was done, for the report and for what it excuses.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// How often, by deed and target.
    pub(crate) tally: BTreeMap<String, u64>,
    pub(crate) kills: u64,
    /// When Postgres was away: each process then counts limits alone.
    pub(crate) counted_alone: Vec<(Instant, Instant)>,
}

/// Somebody who means harm, and owns all that can be harmed.
pub(crate) struct Nemesis {
    pub(crate) system: System,
    pub(crate) servers: Servers,
    pub(crate) done: Done,
    load: Arc<Load>,
    older: Older,
    dice: Dice,
    /// A second instance of a service, while it runs.
    second: Option<Program>,
}

impl Nemesis {
    pub(crate) fn new(
        system: System,
        servers: Servers,
        load: Arc<Load>,
        log: EventLog,
        dice: Dice,
    ) -> Self {
        Self {
            system,
            servers,
            done: Done::default(),
            load,
            older: Older::new(log),
            dice,
            second: None,
        }
    }

    /// Does harm until then.
    pub(crate) async fn rage(&mut self, until: Instant) {
        let mut round = 0;
        while Instant::now() < until {
            round += 1;
            let calm = if round % 5 == 0 {
                1_000..2_500
            } else {
                100..1_200
            };
            tokio::time::sleep(self.dice.millis(calm)).await;
            if round % 5 == 0 {
                let soon = until.min(Instant::now() + Duration::from_secs(8));
                self.until_ready(soon).await;
                self.older.look().await;
            }
            self.supervise();
            let deed = self.dice.weigh(DEEDS);
            self.act(deed).await;
        }
    }

    async fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Kill => {
                let target = self.target();
                self.kill(&[target]).await;
            }
            Deed::KillTwo => {
                let (one, mut two) = (self.target(), self.target());
                while two == one {
                    two = self.target();
                }
                self.kill(&[one, two]).await;
            }
            Deed::KillAgainAndAgain => {
                let target = self.target();
                self.kill_again_and_again(target).await;
            }
            Deed::HoldStill => {
                let target = self.target();
                self.hold_still(target).await;
            }
            Deed::Restart => {
                let target = self.target();
                self.restart(target).await;
            }
            Deed::CutConnections => self.cut_connections().await,
            Deed::Second => self.second().await,
            Deed::OlderCheckpoint => self.older_checkpoint().await,
        }
    }

    fn target(&mut self) -> Target {
        // Of three servers, each is one.
        if self.servers.nats.len() > 1 && self.dice.chance(30) {
            return Target::Nats;
        }
        self.dice.weigh(TARGETS)
    }

    fn name(&mut self, target: Target) -> String {
        match target {
            Target::Service(nth) => self.system.programs()[nth].name().to_owned(),
            Target::Nats => "NATS".to_owned(),
            Target::Postgres => "Postgres".to_owned(),
        }
    }

    fn count(&mut self, what: &str, target: Target) {
        let name = self.name(target);
        *self.done.tally.entry(format!("{what} {name}")).or_default() += 1;
        if what == "kill" {
            self.done.kills += 1;
        }
    }

    /// Notes a time in which limits need not be exact.
    fn counted_alone(&mut self, since: Instant) {
        self.done.counted_alone.push((since, Instant::now()));
    }

    /// Starts again what has ended by itself, as whoever runs services has it done: one that is
    /// started while NATS is away says so and ends.
    fn supervise(&mut self) {
        for nth in 0..SERVICES {
            let program = &mut self.system.programs()[nth];
            if program.has_ended() {
                program.restart();
                self.count(
                    "started again, having ended by itself:",
                    Target::Service(nth),
                );
            }
        }
    }

    /// Waits for every process to be ready, but not for ever; whether they are.
    async fn until_ready(&mut self, until: Instant) -> bool {
        while Instant::now() < until {
            self.supervise();
            let soon = Instant::now() + Duration::from_secs(3);
            let ready = tokio::time::timeout_at(soon.into(), self.system.until_ready()).await;
            if ready.is_ok() {
                return true;
            }
        }
        false
    }

    /// Ends all harm and waits until everything is ready again; whether it gets so.
    pub(crate) async fn heal(&mut self) -> bool {
        self.end_second();
        for nats in &self.servers.nats {
            nats.resume();
        }
        self.servers.postgres.resume();
        self.supervise();
        for nth in 0..SERVICES {
            self.system.programs()[nth].resume();
        }
        self.until_ready(Instant::now() + HEALING).await
    }

    /// The logs of everything that ran.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let mut logs = Vec::new();
        let home = self.system.home();
        for folder in [home.to_owned(), home.join("nats"), home.join("postgres")] {
            let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            logs.extend(
                files
                    .map(|file| file.path())
                    .filter(|path| path.extension().is_some_and(|extension| extension == "log")),
            );
        }
        logs
    }
}
