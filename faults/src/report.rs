//! A summary of a run for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Options;
use crate::check::{Evidence, Findings, Wrong};
use crate::record::Record;

/// Number of differences shown for one check.
const SHOWN: usize = 5;

/// The result of a run.
pub struct Report {
    options: Options,
    raged: Duration,
    commands: BTreeMap<&'static str, [u64; 3]>,
    /// The rounds in which something was done.
    rounds: BTreeSet<u32>,
    /// How often each deed was done, by target.
    faults: BTreeMap<String, BTreeMap<String, u64>>,
    kills: u64,
    events: usize,
    deliveries: usize,
    frames: usize,
    connections: u64,
    /// The responses that the hostile crowd got.
    crowd: Option<String>,
    findings: Findings,
    kept: Option<Kept>,
}

/// Where the record and the servers' logs are.
enum Kept {
    In(PathBuf),
    Not(std::io::Error),
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        raged: Duration,
        evidence: &Evidence<'_>,
        findings: Findings,
    ) -> Self {
        Self {
            options: options.clone(),
            raged,
            commands: evidence.client.notes.tally(),
            rounds: evidence.done.acts.iter().map(|act| act.round).collect(),
            faults: evidence.done.tally(),
            kills: evidence.done.kills,
            events: evidence.facts.all.len(),
            deliveries: evidence.arrived.len(),
            frames: evidence.heard.iter().map(|heard| heard.seen.len()).sum(),
            connections: evidence.heard.iter().map(|heard| heard.connections).sum(),
            crowd: evidence.tally.map(ToString::to_string),
            findings,
            kept: None,
        }
    }

    /// Keeps the record and all logs if something was wrong or it is asked to.
    pub(crate) fn keep(mut self, record: &Record, logs: &[(String, PathBuf)]) -> Self {
        let folder = match &self.options.record {
            Some(folder) => folder.clone(),
            None if self.is_clean() => return self,
            None => std::env::temp_dir().join(format!("waypost-faults-{}", self.options.seed)),
        };
        self.kept = Some(match keep(record, logs, &folder) {
            Ok(()) => Kept::In(folder),
            Err(error) => Kept::Not(error),
        });
        self
    }

    /// Whether nothing was lost, doubled or wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.wrong.is_empty()
    }

    /// The checks that found something wrong.
    pub(crate) fn wrong(&self) -> BTreeSet<&str> {
        let wrong = self.findings.wrong.iter();
        wrong.map(|wrong| wrong.check).collect()
    }

    /// The rounds of the nemesis in which something was done.
    pub(crate) fn rounds(&self) -> &BTreeSet<u32> {
        &self.rounds
    }

    /// Deeds that were done.
    pub fn deeds(&self) -> u64 {
        self.faults.values().flat_map(BTreeMap::values).sum()
    }

    /// Commands that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.commands
            .values()
            .map(|[acknowledged, ..]| acknowledged)
            .sum()
    }
}

fn keep(record: &Record, logs: &[(String, PathBuf)], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    record.write(folder)?;
    for (name, log) in logs {
        std::fs::copy(log, folder.join(name))?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { seed, nats, .. } = &self.options;
        let seconds = self.raged.as_secs();
        writeln!(
            f,
            "Faults for {seconds} s, SEED={seed}, NATS servers: {nats}\n"
        )?;
        writeln!(
            f,
            "{:<24}{:>14}{:>10}{:>10}",
            "commands", "acknowledged", "refused", "unknown"
        )?;
        let mut sum = [0; 3];
        for (name, counts) in &self.commands {
            let [acknowledged, refused, unknown] = counts;
            writeln!(
                f,
                "  {name:<22}{acknowledged:>14}{refused:>10}{unknown:>10}"
            )?;
            for (all, count) in sum.iter_mut().zip(counts) {
                *all += count;
            }
        }
        let [acknowledged, refused, unknown] = sum;
        writeln!(
            f,
            "  {:<22}{acknowledged:>14}{refused:>10}{unknown:>10}",
            "all"
        )?;
        writeln!(
            f,
            "\n{} events in the log, {} requests at the receiver, {} frames over {} sockets",
            self.events, self.deliveries, self.frames, self.connections
        )?;
        writeln!(f, "\nfaults, with {} kills", self.kills)?;
        for (deed, by_whom) in &self.faults {
            let count: u64 = by_whom.values().sum();
            let told = |(whom, count): (&String, &u64)| format!("{whom} ({count})");
            let whom: Vec<_> = by_whom.iter().map(told).collect();
            writeln!(f, "  {count:>6}  {deed}: {}", whom.join(", "))?;
        }
        for line in self.crowd.iter().flat_map(|crowd| crowd.lines()) {
            writeln!(f, "  crowd: {line}")?;
        }
        writeln!(f, "\nchecked")?;
        for (check, count) in &self.findings.counts {
            let wrong = self
                .findings
                .wrong
                .iter()
                .filter(|wrong| wrong.check == *check);
            match wrong.count() {
                0 => writeln!(f, "  {count:>8}  {check}")?,
                wrong => writeln!(f, "  {count:>8}  {check}: {wrong} WRONG")?,
            }
        }
        self.show_wrong(f)?;
        match &self.kept {
            Some(Kept::In(folder)) => writeln!(
                f,
                "\nThe record (run.html, run.json) and the servers' logs are in {}",
                folder.display()
            ),
            Some(Kept::Not(error)) => writeln!(f, "\nThe record could not be kept: {error}"),
            None => Ok(()),
        }
    }
}

impl Report {
    fn show_wrong(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return writeln!(f, "\nNothing lost, nothing doubled, nothing differs.");
        }
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        writeln!(f, "\nWRONG: {}", self.findings.wrong.len())?;
        for Wrong {
            check,
            what,
            expected,
            found,
        } in &self.findings.wrong
        {
            let nth = shown.entry(check).or_default();
            *nth += 1;
            if *nth <= SHOWN {
                writeln!(f, "\n  not so: {check}\n    {what}")?;
                writeln!(f, "    expected: {expected}\n    found:    {found}")?;
            }
        }
        Ok(())
    }
}
