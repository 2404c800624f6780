//! Loses all of NATS once everything is quiet and restores a backup of that moment, as
//! docs/how-to/back-up-and-restore.md says: everything that was there is there again, and nothing
//! happens twice.

use std::collections::BTreeMap;
use std::process::Output;
use std::time::{Duration, Instant};

use event_log::LogSettings;
use harness::System;
use schemas::Log;

use crate::check::{self, Fact, Facts, Findings};
use crate::readers::Receiver;
use crate::servers::Servers;
use crate::{disk, drain, open_log, ready_soon};

const TAKEN: &str = "a backup was taken and restored";
const THERE: &str = "events that stand where they stood before all was lost";
const NEW: &str = "after the restore nothing happened by itself";
const SENT: &str = "after the restore nothing was sent or called again";
const READY: &str = "everything was ready again after the restore";
const QUIET: &str = "all got quiet after the restore";
/// How long new servers may take to elect a leader for the restored data.
const LEADERLESS: Duration = Duration::from_mins(2);
/// How long services may take to be ready with the restored data.
const STARTING: Duration = Duration::from_mins(5);
/// How long nothing may happen for the system to count as quiet.
const STILL: Duration = Duration::from_secs(5);

/// Everything needed to lose all and to compare afterwards.
pub(crate) struct Restored<'a> {
    pub(crate) servers: &'a mut Servers,
    pub(crate) system: &'a mut System,
    pub(crate) log: &'a LogSettings,
    pub(crate) receiver: &'a Receiver,
    pub(crate) database: &'a str,
    /// The events as they were before.
    pub(crate) facts: &'a Facts,
}

impl Restored<'_> {
    pub(crate) async fn check(mut self, findings: &mut Findings) {
        let arrived = self.receiver.arrived().len();
        let restored = self.lose_and_restore().await;
        let right = restored.is_ok();
        let found = restored.err().unwrap_or_default();
        findings.judge(TAKEN, right, "the log", "all of it", found);
        if !right {
            return;
        }
        for program in self.system.programs() {
            program.restart();
        }
        let ready = self.becomes_ready().await;
        findings.judge(READY, ready, "the services", "ready", "not ready in time");
        if !ready {
            return;
        }
        let log = open_log(self.system, self.log).await;
        let mut facts = Facts::open(log).await;
        let (fold, open) = drain::wait(&mut facts, self.receiver, self.database).await;
        findings.judge(QUIET, open.is_empty(), "", "nothing open", open.join(", "));
        tokio::time::sleep(STILL).await;
        facts.advance().await;
        compare(self.facts, &facts, findings);
        let again = self.receiver.arrived().len() - arrived;
        findings.judge(SENT, again == 0, "the receiver", "nothing", again);
        check::read_models(self.database, &fold, findings).await;
        check::verify(self.system, findings).await;
    }

    /// Whether every service becomes ready.
    async fn becomes_ready(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < STARTING {
            if ready_soon(self.system).await {
                return true;
            }
        }
        false
    }

    /// Returns what went wrong, if anything.
    async fn lose_and_restore(&mut self) -> Result<(), String> {
        let folder = self.system.home().join("last-backup");
        let folder = folder.to_str().expect("UTF-8").to_owned();
        let taken = self.system.waypost_output(&["backup", &folder], b"").await;
        said(&taken)?;
        for program in self.system.programs() {
            program.kill();
        }
        for nats in &mut self.servers.nats {
            nats.kill();
            disk::clear(&nats.data()).expect("data of NATS");
        }
        for nats in &mut self.servers.nats {
            nats.restart().await.expect("NATS again");
        }
        let begun = Instant::now();
        loop {
            let restored = self.system.waypost_output(&["restore", &folder], b"").await;
            match said(&restored) {
                Err(_) if begun.elapsed() < LEADERLESS => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                said => return said,
            }
        }
    }
}

fn said(output: &Output) -> Result<(), String> {
    let failed = || String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or_else(failed)
}

/// All events by their positions. Erased ones are missing from both logs.
fn places(facts: &Facts) -> BTreeMap<(Log, u64), &Fact> {
    let all = facts.all.iter();
    all.map(|fact| ((fact.log, fact.sequence), fact)).collect()
}

fn compare(before: &Facts, after: &Facts, findings: &mut Findings) {
    findings.begin(NEW);
    let (before, mut after) = (places(before), places(after));
    for (place, fact) in before {
        let there = after.remove(&place);
        let right = there.is_some_and(|there| {
            (&there.id, &there.stream, &there.data) == (&fact.id, &fact.stream, &fact.data)
        });
        let found = there.map_or_else(|| "nothing".to_owned(), Fact::place);
        findings.judge(THERE, right, fact.place(), "the same", found);
    }
    for fact in after.values() {
        findings.judge(NEW, false, fact.place(), "nothing", "an event");
    }
}
