//! Steps that decide and steps that write: a condition's branch follows from its run's input, and a
//! record is written once, by the step that reports it.

use std::collections::HashMap;

use schemas::{AggregateType, Log};

use super::{Evidence, Fact, Findings};

const WAYS: &str = "conditions that went the way that they had to";
const WRITTEN: &str = "RECORD steps that wrote their record once";

/// A run of the workflow with these steps.
#[derive(Default)]
struct Run<'a> {
    mark: u64,
    way: Option<&'a Fact>,
    /// Steps that report having written a record.
    saved: Vec<&'a Fact>,
    /// Records that follow from the run.
    written: Vec<&'a Fact>,
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for check in [WAYS, WRITTEN] {
        findings.begin(check);
    }
    for (id, run) in &runs(evidence) {
        if let Some(way) = run.way {
            let expected = if run.mark % 2 == 0 { "then" } else { "else" };
            let found = &way.data["way"];
            findings.judge(WAYS, found == expected, way.place(), expected, found);
        }
        if !run.saved.is_empty() || !run.written.is_empty() {
            let name = format!("n{}", run.mark);
            let named = run
                .written
                .iter()
                .filter(|record| record.data["lastName"] == *name);
            let right = named.count() == run.saved.len() && run.written.len() == run.saved.len();
            let places: Vec<_> = run.written.iter().map(|record| record.place()).collect();
            let expected = format!("{} of {name}", run.saved.len());
            findings.judge(
                WRITTEN,
                right,
                format!("run {id}"),
                expected,
                places.join(", "),
            );
        }
    }
}

fn runs<'a>(evidence: &'a Evidence<'_>) -> HashMap<&'a str, Run<'a>> {
    let mut runs: HashMap<&str, Run<'_>> = HashMap::new();
    let mut of_runs: HashMap<&str, &str> = HashMap::new();
    let events = evidence.facts.of(Log::Events);
    for fact in events.filter(|fact| !evidence.is_hostile(&fact.org)) {
        if fact.aggregate == AggregateType::Run {
            of_runs.insert(&fact.id, &fact.stream);
            add(runs.entry(&fact.stream).or_default(), fact);
        } else if fact.kind.starts_with("contact.") && fact.cause.is_some() {
            runs.entry("").or_default().written.push(fact);
        }
    }
    // A record is in the log before the event of the run that it is written with.
    let written = runs.remove("").unwrap_or_default().written;
    for record in written {
        let cause = record.cause.as_deref().unwrap_or_default();
        let run = of_runs.get(cause).copied().unwrap_or("no run");
        runs.entry(run).or_default().written.push(record);
    }
    runs
}

fn add<'a>(run: &mut Run<'a>, fact: &'a Fact) {
    let step = fact.data["stepId"].as_str().unwrap_or_default();
    match (fact.kind.as_str(), step) {
        ("workflow.triggered", _) => {
            let mark = fact.data["triggerPayload"]["mark"].as_u64();
            run.mark = mark.unwrap_or_default();
        }
        ("run.step_succeeded", "which") => run.way = Some(fact),
        ("run.step_succeeded", "save") if fact.data["output"]["status"] != "unchanged" => {
            run.saved.push(fact);
        }
        _ => {}
    }
}
