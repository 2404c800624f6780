//! A record of a run: what was done when, what clients saw meanwhile, and the findings.

mod lag;
mod page;
mod plot;
mod seconds;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::check::{Evidence, Findings};
use crate::{Deed, Options};

pub(crate) use lag::{Lag, Watch};
use page::page;
use seconds::{Second, seconds};

/// When a run began, by the clock and by the process' own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) by_clock: DateTime<Utc>,
    pub(crate) at: Instant,
}

impl Began {
    pub(crate) fn now() -> Self {
        Self {
            by_clock: Utc::now(),
            at: Instant::now(),
        }
    }

    fn seconds_to(self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.at).as_secs_f64()
    }
}

/// Observations made during the run.
pub(crate) struct Seen {
    pub(crate) began: Began,
    /// How long the nemesis injected faults.
    pub(crate) raged: Duration,
    pub(crate) lag: Vec<Lag>,
}

/// A deed with its times in seconds since the run began.
#[derive(Clone, Debug)]
struct Done {
    round: u32,
    deed: String,
    what: String,
    from: f64,
    to: f64,
}

/// The contents of a run's record.
pub(crate) struct Record {
    options: Options,
    began: Began,
    /// How long the nemesis injected faults.
    raged: f64,
    deeds: Vec<Done>,
    seconds: Vec<Second>,
    lag: Vec<Lag>,
    findings: Findings,
}

impl Record {
    pub(crate) fn new(
        options: &Options,
        seen: Seen,
        evidence: &Evidence<'_>,
        findings: &Findings,
    ) -> Self {
        let Seen { began, raged, lag } = seen;
        let deeds = evidence.done.acts.iter().map(|act| Done {
            round: act.round,
            deed: act.deed.clone(),
            what: act.what.clone(),
            from: began.seconds_to(act.began),
            to: began.seconds_to(act.ended),
        });
        Self {
            options: options.clone(),
            began,
            raged: raged.as_secs_f64(),
            deeds: deeds.collect(),
            seconds: seconds(began.at, &evidence.client.notes.attempts()),
            lag,
            findings: findings.clone(),
        }
    }

    /// Writes the record for programs and for people.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.json())?;
        std::fs::write(folder.join("run.json"), text)?;
        std::fs::write(folder.join("run.html"), page(self))
    }

    fn began(&self) -> String {
        let began = self.began.by_clock;
        began.to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    fn json(&self) -> Value {
        let Options {
            seconds,
            seed,
            nats,
            hostile,
            disks,
            clocks,
            ..
        } = self.options;
        let deeds = Deed::possible(&self.options);
        let deeds: Vec<_> = deeds.iter().map(ToString::to_string).collect();
        let done = self.deeds.iter().map(|done| {
            json!({"round": done.round, "deed": done.deed, "what": done.what, "from_seconds": rounded(done.from),
                "to_seconds": rounded(done.to)})
        });
        let per_second = self.seconds.iter().map(|second| {
            json!({"second": second.nth, "acknowledged": second.acknowledged,
                "refused": second.refused, "unknown": second.unknown,
                "p50_ms": rounded(second.p50_ms), "p99_ms": rounded(second.p99_ms)})
        });
        let lag = self
            .lag
            .iter()
            .map(|lag| json!({"seconds": rounded(lag.seconds), "events": lag.events}));
        let findings = self.findings.wrong.iter().map(|wrong| {
            json!({"check": wrong.check, "what": wrong.what, "expected": wrong.expected,
                "found": wrong.found})
        });
        json!({
            "seed": seed,
            "began": self.began(),
            "options": {"seconds": seconds, "nats": nats, "hostile": hostile, "disks": disks, "clocks": clocks, "deeds": deeds},
            "raged_seconds": rounded(self.raged),
            "done": done.collect::<Vec<_>>(),
            "per_second": per_second.collect::<Vec<_>>(),
            "lag": lag.collect::<Vec<_>>(),
            "checked": self.findings.counts,
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}

/// Rounds to three decimal places, as more would not be read.
fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
