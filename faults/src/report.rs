//! One summary of a run for people.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Options;
use crate::check::{Evidence, Findings, Wrong};
use crate::nemesis::Nemesis;

/// Differences of one check that are shown.
const SHOWN: usize = 5;

/// What came of a run.
pub struct Report {
    options: Options,
    raged: Duration,
    commands: BTreeMap<&'static str, [u64; 3]>,
    faults: BTreeMap<String, u64>,
    kills: u64,
    events: usize,
    deliveries: usize,
    frames: usize,
    connections: u64,
    /// What the hostile crowd got.
    crowd: Option<String>,
    findings: Findings,
    logs: Option<PathBuf>,
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
            faults: evidence.done.tally.clone(),
            kills: evidence.done.kills,
            events: evidence.facts.all.len(),
            deliveries: evidence.arrived.len(),
            frames: evidence.heard.iter().map(|heard| heard.seen.len()).sum(),
            connections: evidence.heard.iter().map(|heard| heard.connections).sum(),
            crowd: evidence.tally.map(ToString::to_string),
            findings,
            logs: None,
        }
    }

    /// Keeps what everything has said, where something was wrong.
    pub(crate) fn keep_logs(mut self, nemesis: &Nemesis) -> Self {
        if !self.is_clean() {
            let folder = std::env::temp_dir().join(format!("waypost-faults-{}", self.options.seed));
            self.logs = keep(&nemesis.logs(), &folder).ok().map(|()| folder);
        }
        self
    }

    /// Whether nothing was lost, doubled or wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.wrong.is_empty()
    }

    /// Processes that were killed.
    pub fn kills(&self) -> u64 {
        self.kills
    }

    /// Commands that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.commands
            .values()
            .map(|[acknowledged, ..]| acknowledged)
            .sum()
    }
}

fn keep(logs: &[PathBuf], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for log in logs {
        let name = log.file_name().unwrap_or_default();
        std::fs::copy(log, folder.join(name))?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { seed, nats, .. } = self.options;
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
        for (name, count) in &self.faults {
            writeln!(f, "  {count:>6}  {name}")?;
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
        self.show_wrong(f)
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
        match &self.logs {
            Some(folder) => writeln!(f, "\nThe servers' logs are in {}", folder.display()),
            None => writeln!(f, "\nThe servers' logs could not be kept"),
        }
    }
}
