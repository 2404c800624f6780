//! Runs: each trigger one run, each run one end, each step one effect.

use std::collections::{HashMap, HashSet};

use schemas::AggregateType;

use super::{Evidence, Fact, Findings};
use crate::definitions::{FAILS, TRIES};
use crate::notes::Outcome;
use crate::world::text;

const STARTED: &str = "acknowledged triggers have the run that they were told of";
const ENDED: &str = "runs that began once and ended once";
const EFFECTS: &str = "steps with one effect";
const ATTEMPTS: &str = "attempts at steps that began once";
const TRIED: &str = "steps that are never taken failed after so many tries";
const CALLED: &str = "HTTP steps that succeeded had called, under one key";
const ENDS: [&str; 3] = ["run.succeeded", "run.failed", "run.cancelled"];

/// The contents of a run's stream, by what must not be in it twice.
#[derive(Default)]
struct Run<'a> {
    events: HashMap<&'a str, u32>,
    attempts: HashMap<String, u32>,
    effects: HashMap<String, u32>,
    last: Option<&'a Fact>,
    /// Its call is never accepted.
    fails: bool,
}

impl Run<'_> {
    fn count(&self, kind: &str) -> u32 {
        self.events.get(kind).copied().unwrap_or_default()
    }
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let mut runs: HashMap<(&str, &str), Run<'_>> = HashMap::new();
    for fact in &evidence.facts.all {
        if fact.aggregate == AggregateType::Run {
            add(runs.entry((&fact.org, &fact.stream)).or_default(), fact);
        }
    }
    let called = evidence.arrived.iter().filter(|call| call.path == "/step");
    let called: HashSet<&str> = called.map(|call| call.id.as_str()).collect();
    // Of a run that was forgotten with a person, anything may be missing.
    let whole = |run: &Run<'_>| run.count("run.forgotten") == 0;
    for ((org, id), run) in runs.iter().filter(|(_, run)| whole(run)) {
        let what = format!("run {id} of {org}");
        judge(&what, run, findings);
        // The hostile tenant's runs report the same thing several times, or nothing.
        if !evidence.is_hostile(org) {
            judge_effects(&what, run, findings);
            judge_tries(&what, run, findings);
        }
        for step in run
            .effects
            .keys()
            .filter(|step| matches!(step.as_str(), "one" | "two"))
        {
            let key = format!("{id}/{step}");
            findings.judge(CALLED, called.contains(key.as_str()), key, "a call", "none");
        }
    }
    let known: HashSet<&str> = runs.keys().map(|(_, id)| *id).collect();
    for note in evidence.client.notes.commands() {
        if let ("trigger", Outcome::Acknowledged { body, .. }) = (note.command, &note.outcome) {
            let id = text(&body["runId"]);
            findings.judge(
                STARTED,
                known.contains(id.as_str()),
                &note.request,
                id,
                "no such run",
            );
        }
    }
}

fn add<'a>(run: &mut Run<'a>, fact: &'a Fact) {
    *run.events.entry(&fact.kind).or_default() += 1;
    run.last = Some(fact);
    let step = text(&fact.data["stepId"]);
    match fact.kind.as_str() {
        "workflow.triggered" => run.fails = fact.data["workflowId"] == FAILS,
        "run.step_started" => {
            let attempt = format!("{step} {}", fact.data["attempt"]);
            *run.attempts.entry(attempt).or_default() += 1;
        }
        "run.step_succeeded" => *run.effects.entry(step).or_default() += 1,
        custom if custom.starts_with("custom.") => {
            *run.effects.entry(custom.to_owned()).or_default() += 1;
        }
        _ => {}
    }
}

fn judge(what: &str, run: &Run<'_>, findings: &mut Findings) {
    let began = run.count("workflow.triggered");
    // Each retry is one more beginning and end.
    let times = 1 + run.count("run.retried");
    let ended: u32 = ENDS.iter().map(|end| run.count(end)).sum();
    let found = format!("{:?}", run.events);
    let right = began == 1 && ended == times && run.count("run.started") <= times;
    findings.judge(ENDED, right, what, "one beginning and one end", &found);
    for (attempt, times) in &run.attempts {
        let what = format!("attempt {attempt} of {what}");
        findings.judge(ATTEMPTS, *times == 1, what, "once", times);
    }
}

fn judge_tries(what: &str, run: &Run<'_>, findings: &mut Findings) {
    if !run.fails {
        return;
    }
    let tries = run.count("run.step_failed");
    let least = TRIES * run.count("run.failed");
    // A cancelled run has not reached its last attempt.
    let most = least + TRIES * run.count("run.cancelled");
    let right = (least..=most).contains(&tries) && run.count("run.succeeded") == 0;
    let expected = format!("{least} to {most}");
    findings.judge(TRIED, right, what, expected, format!("{:?}", run.events));
}

fn judge_effects(what: &str, run: &Run<'_>, findings: &mut Findings) {
    let found = format!("{:?}", run.events);
    for (effect, times) in &run.effects {
        let what = format!("{effect} of {what}");
        findings.judge(EFFECTS, *times == 1, what, "once", times);
    }
    let notified = run
        .effects
        .keys()
        .any(|effect| effect.starts_with("custom."));
    let succeeded = run.count("run.succeeded") == 1;
    findings.judge(
        EFFECTS,
        notified || !succeeded,
        what,
        "what NOTIFY says",
        &found,
    );
}
