//! Steps that wait, for a time or for an event: each wait ends once, with what it was for.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::{AggregateType, Log};

use super::{Evidence, Fact, Findings};
use crate::definitions::{ANSWER_WITHIN, DELAY, HEARD};
use crate::notes::Outcome;

const ENDED: &str = "waits that ended once";
const LASTED: &str = "waits for a time that lasted so long";
const WITH_ITS_EVENT: &str =
    "waits that ended with the event that they were for, or in time without";
const NOT_MISSED: &str = "events that came in time for a wait ended it";

/// What runs may wait for.
struct Waits<'a> {
    /// Leads by organization and name.
    leads: HashMap<(&'a str, &'a str), Vec<&'a Fact>>,
    /// When the command of a trace was acknowledged to a client.
    told: HashMap<u128, DateTime<Utc>>,
    clocks_right: bool,
}

/// One attempt at a step that waits.
struct Wait<'a> {
    run: &'a [&'a Fact],
    /// The event that started it: a wait for an event has an event of its own.
    began: &'a Fact,
    /// When its time started.
    since: DateTime<Utc>,
    end: Option<&'a Fact>,
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for check in [ENDED, LASTED, WITH_ITS_EVENT, NOT_MISSED] {
        findings.begin(check);
    }
    let waits = Waits::of(evidence);
    let mut runs: HashMap<(&str, &str), Vec<&Fact>> = HashMap::new();
    for fact in &evidence.facts.all {
        if fact.aggregate == AggregateType::Run && !evidence.is_hostile(&fact.org) {
            runs.entry((&fact.org, &fact.stream))
                .or_default()
                .push(fact);
        }
    }
    // Of a run that was forgotten with a person, anything may be missing.
    let whole = |run: &[&Fact]| run.iter().all(|fact| fact.kind != "run.forgotten");
    for run in runs.values().filter(|run| whole(run)) {
        for began in run {
            match (began.kind.as_str(), began.data["stepId"].as_str()) {
                ("run.step_started", Some("pause")) => {
                    let wait = Wait::of(run, began, findings);
                    waits.judge_delay(&wait, findings);
                }
                ("run.event_awaited", _) => {
                    let wait = Wait::of(run, began, findings);
                    waits.judge_end(&wait, findings);
                    waits.judge_missed(&wait, findings);
                }
                _ => {}
            }
        }
    }
}

impl<'a> Wait<'a> {
    fn of(run: &'a [&'a Fact], began: &'a Fact, findings: &mut Findings) -> Self {
        let same = |fact: &&&Fact| {
            ["stepId", "attempt"]
                .iter()
                .all(|field| fact.data[field] == began.data[field])
        };
        let ended =
            |fact: &&&Fact| matches!(fact.kind.as_str(), "run.step_succeeded" | "run.step_failed");
        let ends: Vec<_> = run.iter().filter(same).filter(ended).collect();
        // A run that ends earlier ends its waits.
        let cut_short = run.iter().any(|fact| {
            let ended = matches!(fact.kind.as_str(), "run.failed" | "run.cancelled");
            ended && fact.sequence > began.sequence
        });
        let right = ends.len() == 1 || ends.is_empty() && cut_short;
        findings.judge(ENDED, right, began.place(), "one end", ends.len());
        let mut started = run.iter().filter(same);
        let started = started.find(|fact| fact.kind == "run.step_started");
        Self {
            run,
            began,
            since: started.map_or(began.time, |started| started.time),
            end: ends.first().map(|end| **end),
        }
    }

    fn lasted(&self, end: &Fact) -> TimeDelta {
        end.time - self.since
    }

    /// When a wait for an event times out.
    fn until(&self) -> DateTime<Utc> {
        self.since + TimeDelta::milliseconds(ANSWER_WITHIN)
    }

    fn answer(&self) -> &str {
        let payload = self.run.first().map(|fact| &fact.data["triggerPayload"]);
        payload
            .and_then(|payload| payload["answer"].as_str())
            .unwrap_or_default()
    }
}

impl<'a> Waits<'a> {
    fn of(evidence: &'a Evidence<'_>) -> Self {
        let mut leads: HashMap<_, Vec<&Fact>> = HashMap::new();
        for fact in evidence
            .facts
            .of(Log::Events)
            .filter(|fact| fact.kind == HEARD)
        {
            let name = fact.data["name"].as_str().unwrap_or_default();
            leads
                .entry((fact.org.as_str(), name))
                .or_default()
                .push(fact);
        }
        let notes = evidence.client.notes.commands().into_iter();
        let told = notes.filter(|note| matches!(note.outcome, Outcome::Acknowledged { .. }));
        Self {
            leads,
            told: told.map(|note| (note.trace, note.answered)).collect(),
            clocks_right: !evidence.done.clocks_jumped(),
        }
    }

    fn judge_delay(&self, wait: &Wait<'_>, findings: &mut Findings) {
        if let Some(end) = wait.end.filter(|_| self.clocks_right) {
            let lasted = wait.lasted(end).num_milliseconds();
            findings.judge(LASTED, lasted >= DELAY, end.place(), DELAY, lasted);
        }
    }

    fn judge_end(&self, wait: &Wait<'_>, findings: &mut Findings) {
        let Some(end) = wait.end else { return };
        let event = end.data["output"]["event"]["id"].as_str();
        let right = match (end.data["way"].as_str(), event) {
            (Some("next"), Some(id)) => self.answers(wait).any(|lead| {
                lead.id == id && lead.sequence < end.sequence && lead.time <= wait.until()
            }),
            (Some("onTimeout"), None) => end.time >= wait.until() || !self.clocks_right,
            _ => false,
        };
        let expected = format!("{HEARD} {}", wait.answer());
        findings.judge(WITH_ITS_EVENT, right, end.place(), expected, &end.data);
    }

    /// A lead acknowledged to a client before the timeout must be found, if only by looking back.
    fn judge_missed(&self, wait: &Wait<'_>, findings: &mut Findings) {
        let Some(end) = wait.end.filter(|_| self.clocks_right) else {
            return;
        };
        let in_time = |lead: &&Fact| {
            let told = lead.trace.and_then(|trace| self.told.get(&trace));
            told.is_some_and(|at| *at <= wait.until())
        };
        if let Some(lead) = self.answers(wait).find(in_time) {
            let right = end.data["way"] == "next";
            findings.judge(
                NOT_MISSED,
                right,
                lead.place(),
                wait.began.place(),
                &end.data,
            );
        }
    }

    /// The leads that a wait is for: those after its start.
    fn answers<'w>(&'w self, wait: &'w Wait<'_>) -> impl Iterator<Item = &'w Fact> {
        let began = wait.began.sequence;
        let named = self.leads.get(&(wait.began.org.as_str(), wait.answer()));
        let named = named.into_iter().flatten().copied();
        named.filter(move |lead| lead.sequence > began)
    }
}
