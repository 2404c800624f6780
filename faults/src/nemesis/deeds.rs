//! What the nemesis does.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::{Nemesis, RUNNER, SERVICES, Target};
use crate::client::Duty;
use crate::notes::Complaint;

/// How long connections are repeatedly cut.
const CUTTING: Duration = Duration::from_secs(3);
/// How long a service may take to exit when asked to.
const ENDING: Duration = Duration::from_secs(20);
const ENDS: &str = "services that ended when asked to";
/// How long a second instance may take to be ready.
const STARTING: Duration = Duration::from_secs(20);

impl Nemesis {
    /// Kills as a crash would, and restarts after a moment or two.
    pub(super) async fn kill(&mut self, targets: &[Target]) {
        let since = Instant::now();
        for target in targets {
            self.kills(*target);
            match target {
                Target::Service(nth) => self.system.programs()[*nth].kill(),
                Target::Nats => self.one_of_nats().kill(),
                Target::Postgres => self.servers.postgres.kill(),
            }
        }
        tokio::time::sleep(self.dice.millis(0..900)).await;
        for target in targets {
            self.bring_back(*target).await;
        }
        if targets.contains(&Target::Postgres) {
            self.counted_alone(since);
        }
    }

    pub(super) fn kills(&mut self, target: Target) {
        self.hurts(target);
        self.done.kills += 1;
    }

    /// Kills one of the servers, by its number.
    pub(super) fn kill_server(&mut self, nth: usize) {
        self.servers.kill(nth);
        self.done.hurt(self.servers.name(nth));
        self.done.kills += 1;
    }

    /// Kills each time that it has just begun to catch up.
    pub(super) async fn kill_again_and_again(&mut self, target: Target) {
        for _ in 0..3 + self.dice.below(3) {
            self.kill(&[target]).await;
            tokio::time::sleep(self.dice.millis(200..1_500)).await;
        }
    }

    pub(super) async fn bring_back(&mut self, target: Target) {
        match target {
            Target::Service(nth) => self.system.programs()[nth].restart(),
            Target::Nats => {
                for nats in self
                    .servers
                    .nats
                    .iter_mut()
                    .filter(|nats| nats.pid().is_none())
                {
                    nats.restart().await.expect("NATS again");
                }
            }
            Target::Postgres => {
                let again = self.servers.postgres.restart().await;
                again.expect("Postgres again");
            }
        }
    }

    /// Pauses a process: its connections stay open and nothing answers.
    pub(super) async fn hold_still(&mut self, target: Target, span: Duration) {
        let since = Instant::now();
        self.hurts(target);
        let nth_nats = self.dice.below(self.servers.nats.len());
        match target {
            Target::Service(nth) => self.system.programs()[nth].pause(),
            Target::Nats => self.servers.nats[nth_nats].pause(),
            Target::Postgres => self.servers.postgres.pause(),
        }
        tokio::time::sleep(span).await;
        match target {
            Target::Service(nth) => self.system.programs()[nth].resume(),
            Target::Nats => self.servers.nats[nth_nats].resume(),
            Target::Postgres => self.servers.postgres.resume(),
        }
        if target == Target::Postgres {
            self.counted_alone(since);
        }
    }

    /// Shuts down cleanly and restarts.
    pub(super) async fn restart(&mut self, target: Target) {
        let since = Instant::now();
        self.hurts(target);
        match target {
            Target::Service(nth) => {
                self.end_in_order(nth).await;
                self.system.programs()[nth].restart();
            }
            Target::Nats => {
                let again = self.one_of_nats().restart().await;
                again.expect("NATS again");
            }
            Target::Postgres => {
                let again = self.servers.postgres.restart().await;
                again.expect("Postgres again");
                self.counted_alone(since);
            }
        }
    }

    /// Has Postgres close every connection many times: wherever a service is in a write, it has to
    /// find out whether the write took effect.
    pub(super) async fn cut_connections(&mut self) {
        let since = Instant::now();
        let url = self.servers.postgres.url();
        let connecting = tokio::time::timeout(CUTTING, PgConnection::connect(&url)).await;
        let Ok(Ok(mut connection)) = connecting else {
            return;
        };
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        while since.elapsed() < CUTTING {
            if connection.execute(cut).await.is_err() {
                break;
            }
            tokio::time::sleep(self.dice.millis(10..120)).await;
        }
        self.hurts(Target::Postgres);
        self.counted_alone(since);
    }

    /// Asks a service to exit, which it has to do soon whatever is going on.
    async fn end_in_order(&mut self, nth: usize) {
        self.system.programs()[nth].ask_to_end();
        let begun = Instant::now();
        while begun.elapsed() < ENDING {
            if self.system.programs()[nth].has_ended() {
                return self.load.client.notes.right(ENDS);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let what = self.system.programs()[nth].name().to_owned();
        self.load.client.notes.complain(Complaint {
            check: ENDS,
            what,
            expected: "an end within seconds".to_owned(),
            found: format!("none within {ENDING:?}"),
        });
    }

    fn one_of_nats(&mut self) -> &mut local_servers::LocalNats {
        let nth = self.dice.below(self.servers.nats.len());
        &mut self.servers.nats[nth]
    }

    /// Starts a second instance of a service beside the first. It serves half of the requests until
    /// the next time, when it is killed.
    pub(super) async fn second(&mut self) {
        self.end_second();
        let soon = Instant::now() + Duration::from_secs(6);
        self.until_ready(soon).await;
        let target = Target::Service(self.dice.below(SERVICES));
        let name = self.name(target);
        let starting = self.system.another(&name);
        let Ok((client, program)) = tokio::time::timeout(STARTING, starting).await else {
            return;
        };
        self.hurts(target);
        let duty = match name.as_str() {
            "command-api" => Duty::Commands,
            "query-api" => Duty::Queries,
            _ => Duty::Nothing,
        };
        let mut beside = self.load.client.beside.lock().expect("a lock");
        *beside = Some((client.base().to_owned(), duty));
        drop(beside);
        self.second = Some(program);
    }

    /// Kills the second instance, if there is one.
    pub(super) fn end_second(&mut self) {
        if let Some(mut program) = self.second.take() {
            *self.load.client.beside.lock().expect("a lock") = None;
            program.kill();
            self.done
                .hurt(format!("the second {} killed", program.name()));
            self.done.kills += 1;
        }
    }

    /// Kills the runner and starts it with older checkpoints, so that it receives again what it has
    /// already handled.
    pub(super) async fn older_checkpoint(&mut self) {
        let nth = (0..SERVICES).find(|nth| self.system.programs()[*nth].name() == RUNNER);
        let Some(nth) = nth.filter(|_| self.older.is_there()) else {
            return;
        };
        self.end_second();
        let target = Target::Service(nth);
        self.kills(target);
        self.system.programs()[nth].kill();
        if !self.older.put_back().await {
            self.done.hurt("killed only".to_owned());
        }
        self.system.programs()[nth].restart();
    }
}
