//! The nemesis: kills, pauses and restarts everything there is, delivers twice, and interferes
//! between services and their servers.

mod clocks;
mod cluster;
mod deed;
mod deeds;
mod disks;
mod done;
mod grants;
mod older;
mod operator;
mod routes;
mod standby;
mod versions;
mod ways;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::EventLog;
use harness::{Program, System};

use crate::clocks::Clocks;
use crate::load::Load;
use crate::network::Network;
use crate::servers::Servers;
use crate::{Options, ready_soon};
use hostile::Dice;
use older::Older;
use operator::Operation;

pub use deed::Deed;
pub(crate) use done::Done;

/// Services among the system's programs: projector, command-api, query-api, workflow-runner.
const SERVICES: usize = 4;
/// Those that count requests against limits.
const COUNTING: [usize; 2] = [1, 2];
const RUNNER: &str = "workflow-runner";
/// How long everything may take to be ready once nothing is hurt any more.
const HEALING: Duration = Duration::from_mins(2);
/// Longer than any lease or consumer lives.
const LONG: Duration = Duration::from_secs(90);
/// Name that records the restart, as by any supervisor, of a service that exited on its own.
const ENDED_BY_ITSELF: &str = "(ended by itself)";

/// What can be hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Service(usize),
    Nats,
    Postgres,
}

const TARGETS: &[(usize, Target)] = &[
    (4, Target::Service(0)),
    (3, Target::Service(1)),
    (2, Target::Service(2)),
    (4, Target::Service(3)),
    (3, Target::Nats),
    (3, Target::Postgres),
];

/// Everything that can be hurt.
pub(crate) struct Hurt {
    pub(crate) servers: Servers,
    pub(crate) network: Network,
    pub(crate) clocks: Option<Clocks>,
    pub(crate) system: System,
}

impl Hurt {
    /// Puts proxies between each service and the servers, and gives it a clock of its own if asked
    /// to, then restarts it with these.
    pub(crate) async fn come_between(mut system: System, servers: Servers, clocks: bool) -> Self {
        let network = Network::before(&servers, SERVICES);
        let network = network.expect("ports for proxies");
        let clocks = clocks.then(|| Clocks::right(system.home(), SERVICES));
        for (nth, program) in system.programs().iter_mut().enumerate() {
            for (name, value) in network.settings(nth, &servers) {
                program.set(name, &value);
            }
            for (name, value) in clocks.iter().flat_map(|clocks| clocks.settings(nth)) {
                program.set(name, &value);
            }
            program.restart();
        }
        system.until_ready().await;
        Self {
            servers,
            network,
            clocks,
            system,
        }
    }
}

/// The nemesis. It owns everything that can be harmed.
pub(crate) struct Nemesis {
    pub(crate) servers: Servers,
    /// Dropped after the servers: their data are in its folder.
    pub(crate) system: System,
    pub(crate) done: Done,
    network: Network,
    clocks: Option<Clocks>,
    /// Deeds it may do, by weight.
    deeds: Vec<(usize, Deed)>,
    load: Arc<Load>,
    older: Older,
    /// When Postgres' data were saved for a later restore.
    database_kept: Option<Instant>,
    /// The NATS server whose data were saved for a later restore.
    folder_kept: Option<usize>,
    /// Folder of another version's programs.
    other: Option<PathBuf>,
    /// Source of each round's dice.
    root: Dice,
    /// The round's dice, so that a round plays out the same whatever others do.
    dice: Dice,
    /// The only rounds in which anything is done; all rounds if `None`.
    rounds: Option<BTreeSet<u32>>,
    /// A second instance of a service, while it is running.
    second: Option<Program>,
    /// An operator's command in progress.
    operation: Option<Operation>,
}

impl Nemesis {
    pub(crate) fn new(
        options: &Options,
        hurt: Hurt,
        load: Arc<Load>,
        log: EventLog,
        dice: Dice,
    ) -> Self {
        let Hurt {
            servers,
            network,
            clocks,
            system,
        } = hurt;
        Self {
            servers,
            system,
            done: Done::default(),
            network,
            clocks,
            deeds: Deed::weighed(options),
            load,
            older: Older::new(log),
            database_kept: None,
            folder_kept: None,
            other: options.other.clone(),
            root: dice.clone(),
            dice,
            rounds: options.rounds.clone(),
            second: None,
            operation: None,
        }
    }

    /// Does harm until then, or until the last round in which something is to be done.
    pub(crate) async fn rage(&mut self, until: Instant) {
        let last = match &self.rounds {
            Some(rounds) => rounds.last().copied().unwrap_or_default(),
            None => u32::MAX,
        };
        if self.deeds.is_empty() {
            return tokio::time::sleep_until(until.into()).await;
        }
        for round in 1..=last {
            if Instant::now() >= until {
                return;
            }
            self.done.round = round;
            self.dice = self.root.of(&format!("round {round}"));
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
            let deed = self.dice.weigh(&self.deeds);
            let has_time = deed != Deed::HoldLong || Instant::now() + LONG < until;
            if has_time && self.is_wanted(round) {
                self.act(deed).await;
            }
        }
    }

    fn is_wanted(&self, round: u32) -> bool {
        let rounds = self.rounds.as_ref();
        rounds.is_none_or(|rounds| rounds.contains(&round))
    }

    async fn act(&mut self, deed: Deed) {
        let began = Instant::now();
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
            Deed::KillNatsAndPostgres => self.kill_nats_and_postgres().await,
            Deed::HoldStill | Deed::HoldLong => {
                let target = self.target();
                let span = self.span(deed);
                self.hold_still(target, span).await;
            }
            Deed::Restart => {
                let target = self.target();
                self.restart(target).await;
            }
            Deed::Second => self.second().await,
            Deed::OlderCheckpoint => self.older_checkpoint().await,
            Deed::CutConnections => self.cut_connections().await,
            Deed::FewFiles => self.few_files().await,
            Deed::Delay
            | Deed::Partition
            | Deed::HoldAnswers
            | Deed::HoldRequests
            | Deed::CutAnswers
            | Deed::Refuse => self.hurt_ways(deed).await,
            Deed::StepDown => self.step_down().await,
            Deed::TwoOfThree => self.two_of_three().await,
            Deed::FolderLost => self.folder_lost().await,
            Deed::OlderFolder => self.older_folder().await,
            Deed::EndCutOff => self.end_cut_off().await,
            Deed::ServersParted | Deed::ServersHalfParted | Deed::ServersFar | Deed::ServersCut => {
                self.hurt_routes(deed).await;
            }
            Deed::OlderDatabase => self.older_database().await,
            Deed::StandbyPromoted => self.standby_promoted().await,
            Deed::OtherVersion => self.other_version().await,
            Deed::Verify | Deed::Rebuild | Deed::Backup | Deed::MasterKey => {
                self.operate(deed).await;
            }
            // Done once, after all else has been judged.
            Deed::AllLost => {}
            Deed::PowerLoss => self.power_loss().await,
            Deed::DiskFails => self.disk_fails().await,
            Deed::DiskFull => self.disk_full().await,
            Deed::DiskHangs => self.disk_hangs().await,
            Deed::ClockJumps => self.clock_jumps().await,
        }
        self.done.end(deed.to_string(), began);
    }

    /// How long something is paused.
    fn span(&mut self, deed: Deed) -> Duration {
        let span = match deed {
            Deed::HoldLong => return LONG,
            _ if self.dice.chance(70) => 100..2_000,
            _ => 2_000..6_000,
        };
        self.dice.millis(span)
    }

    fn target(&mut self) -> Target {
        // With three servers, each counts as one target.
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

    /// Records that the current deed hurts a target.
    fn hurts(&mut self, target: Target) {
        let name = self.name(target);
        self.done.hurt(name);
    }

    /// Records a time in which limits need not be exact.
    fn counted_alone(&mut self, since: Instant) {
        self.done.counted_alone.push((since, Instant::now()));
    }

    /// Restarts services that have exited on their own, as a supervisor would.
    fn supervise(&mut self) {
        for nth in 0..SERVICES {
            let program = &mut self.system.programs()[nth];
            if program.has_ended() {
                program.restart();
                let name = program.name().to_owned();
                let again = ENDED_BY_ITSELF.to_owned();
                self.done.add(again, name, Instant::now());
            }
        }
    }

    /// Waits for every process to be ready until the deadline; returns whether they are.
    async fn until_ready(&mut self, until: Instant) -> bool {
        while Instant::now() < until {
            self.supervise();
            if ready_soon(&self.system).await {
                return true;
            }
        }
        false
    }

    /// Ends all harm and waits until everything is ready again; returns whether it is.
    pub(crate) async fn heal(&mut self) -> bool {
        self.end_second();
        self.network.open();
        self.servers.routes.open();
        self.set_clocks_right();
        self.end_other_versions();
        for nats in &self.servers.nats {
            nats.resume();
        }
        self.servers.postgres.resume();
        self.supervise();
        for nth in 0..SERVICES {
            self.system.programs()[nth].resume();
        }
        let healed = self.until_ready(Instant::now() + HEALING).await;
        self.end_operations().await;
        healed
    }

    /// The logs of everything that ran, each with a unique name.
    pub(crate) fn logs(&self) -> Vec<(String, PathBuf)> {
        let home = self.system.home();
        let mut logs = Vec::new();
        for folder in [home.to_owned(), home.join("nats"), home.join("postgres")] {
            let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let named = files.map(|file| {
                let name = file.file_name().to_string_lossy().into_owned();
                (name, file.path())
            });
            logs.extend(named.filter(|(_, path)| path.extension().is_some_and(|it| it == "log")));
        }
        // Servers of a cluster have their own homes.
        for nth in 1..=self.servers.nats.len() {
            let log = home.join(format!("waypost-{nth}/nats/nats.log"));
            if log.exists() {
                logs.push((format!("nats-{nth}.log"), log));
            }
        }
        logs
    }
}
