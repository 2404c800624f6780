//! Commands against the log: nothing lost, nothing twice, nothing that was not asked for.

use std::collections::{HashMap, HashSet};

use event_log::Position;
use schemas::Log;
use serde_json::Value;

use super::{Evidence, Fact, Findings, holds};
use crate::notes::{ExpectedEvent, Note, Outcome, Times};
use crate::upload::ROWS;

const LOST: &str = "acknowledged commands stand in the log once";
const REFUSED: &str = "refused commands left nothing";
const KEYED: &str = "commands with an Idempotency-Key happened at most once";
const UNKEYED: &str = "commands whose outcome nobody knows happened at most once";
const UNASKED: &str = "events that somebody asked for";
const CAUSED: &str = "events that follow from another one that is there";
const READABLE: &str = "the log can be read without a gap";
const AT_POSITION: &str = "acknowledged positions are the command's own";
const LINES: &str = "lines that were acknowledged stand in the log";
const ONE_FIX: &str = "a person's fix stands in the log once";

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let facts = evidence.facts;
    findings.judge(
        READABLE,
        facts.unreadable.is_empty(),
        "the log",
        "every event",
        facts.unreadable.join("; "),
    );
    let notes = evidence.client.notes.commands();
    let known: HashSet<u128> = notes.iter().map(|note| note.trace).collect();
    let mut by_trace: HashMap<u128, Vec<&Fact>> = HashMap::new();
    let ids: HashSet<&str> = facts.all.iter().map(|fact| fact.id.as_str()).collect();
    for fact in &facts.all {
        let cause = fact.cause.as_ref();
        if let Some(cause) = cause.filter(|_| !came_over_the_api(fact)) {
            let there = ids.contains(cause.as_str()) || facts.may_outlive_its_cause(fact);
            findings.judge(
                CAUSED,
                there,
                fact.place(),
                "its cause",
                format!("no {cause}"),
            );
            continue;
        }
        if evidence.is_the_crowds(fact) {
            continue;
        }
        let trace = fact.trace.filter(|trace| known.contains(trace));
        if let Some(trace) = trace {
            by_trace.entry(trace).or_default().push(fact);
        } else if !facts.is_of_the_making(fact) && is_asked_for(fact) {
            findings.judge(UNASKED, false, fact.place(), "a command", "none");
        }
    }
    let fixes = fixes(evidence, findings);
    for note in &notes {
        let happened = by_trace.remove(&note.trace).unwrap_or_default();
        one(note, &happened, findings);
        let answers = answers(note);
        at_position(note, &happened, &answers, findings);
        lines(note, &happened, &answers, findings);
        if let ("positions", Outcome::Acknowledged { .. }) = (note.command, &note.outcome) {
            for expected in &note.expected {
                let there = fixes.contains(&fix(&expected.data));
                findings.judge(LOST, there, &note.request, &expected.data, "no such fix");
            }
        }
    }
}

/// A run's own API call keeps the run's correlation, and has its request as its cause.
fn came_over_the_api(fact: &Fact) -> bool {
    fact.kind == "workflow.triggered" && fact.data["triggerPayload"]["triggeredBy"] == "api_key"
}

/// Waypost itself makes attempts at deliveries, begins runs that the clock triggers, and notes the
/// runs about a person.
fn is_asked_for(fact: &Fact) -> bool {
    let is_scheduled = fact.data["triggerPayload"]["triggeredBy"] == "schedule";
    fact.log != Log::Deliveries && !is_scheduled && !fact.is_note()
}

/// A claim keeps a command from happening twice, and is not an effect itself.
fn is_effect(fact: &Fact) -> bool {
    !fact.kind.starts_with("claim.")
}

fn one(note: &Note, happened: &[&Fact], findings: &mut Findings) {
    let mut left: Vec<(&ExpectedEvent, u32)> =
        note.expected.iter().map(|expected| (expected, 0)).collect();
    let check = match (&note.outcome, note.keyed) {
        (_, true) => KEYED,
        (Outcome::Acknowledged { .. }, false) => LOST,
        (Outcome::Refused { .. }, false) => REFUSED,
        (Outcome::Unknown, false) => UNKEYED,
    };
    // Duplicates are found event by event, below.
    findings.judge(check, true, "", "", "");
    let mut effects = 0;
    for fact in happened.iter().filter(|fact| is_effect(fact)) {
        effects += 1;
        let fits = |(expected, times): &&mut (&ExpectedEvent, u32)| {
            (*times == 0 || expected.times == Times::Some)
                && expected.types.contains(&fact.kind)
                && holds(&fact.data, &expected.data)
        };
        if let Some((_, times)) = left.iter_mut().find(fits) {
            *times += 1;
            findings.judge(UNASKED, true, "", "", "");
        } else {
            let is_expected = left
                .iter()
                .any(|(expected, _)| expected.types.contains(&fact.kind));
            let check = if is_expected { check } else { UNASKED };
            let found = format!("{} with {}; {:?}", fact.place(), fact.data, note.outcome);
            findings.judge(
                check,
                false,
                &note.request,
                "one event for what was asked",
                found,
            );
        }
    }
    match note.outcome {
        Outcome::Acknowledged { .. } => {
            for (expected, times) in left {
                let lost = times == 0 && expected.times == Times::Once;
                let expected = format!("{:?} with {}", expected.types, expected.data);
                findings.judge(LOST, !lost, &note.request, expected, "nothing");
            }
            if note.command == "call for help" {
                findings.judge(LOST, effects > 0, &note.request, "a call", "nothing");
            }
        }
        // The first of several attempts may have been in progress when the last was refused.
        Outcome::Refused { status } if note.attempts == 1 => {
            let found = format!("{status}, and {effects} events");
            findings.judge(REFUSED, effects == 0, &note.request, "nothing", found);
        }
        Outcome::Refused { .. } | Outcome::Unknown => {}
    }
}

/// The position in a response is that of the command's last event, if it wrote one.
fn at_position(note: &Note, happened: &[&Fact], answers: &[Answer<'_>], findings: &mut Findings) {
    let Outcome::Acknowledged {
        position: Some(position),
        ..
    } = &note.outcome
    else {
        return;
    };
    let Ok(position) = position.parse::<Position>() else {
        return findings.judge(AT_POSITION, false, &note.request, "a position", position);
    };
    let confirmed = happened
        .iter()
        .filter(|fact| !is_unconfirmed(fact, answers));
    let last = confirmed.map(|fact| fact.sequence).max();
    if last.is_none() || note.attempts > 1 {
        return;
    }
    let right = Some(position.sequence()) == last;
    let places: Vec<_> = happened.iter().map(|fact| fact.place()).collect();
    findings.judge(
        AT_POSITION,
        right,
        &note.request,
        places.join(", "),
        position.sequence(),
    );
}

/// The response to a line of a bulk write, with the line that it answers.
type Answer<'a> = (Value, Option<&'a ExpectedEvent>);

fn answers(note: &Note) -> Vec<Answer<'_>> {
    let Outcome::Acknowledged {
        body: Value::String(body),
        ..
    } = &note.outcome
    else {
        return Vec::new();
    };
    // A header row is a line as well.
    let first = if note.command == ROWS { 2 } else { 1 };
    let answers = body.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap_or_default();
        let nth = answer["line"]
            .as_u64()
            .and_then(|nth| usize::try_from(nth).ok());
        let expected = nth.and_then(|nth| note.expected.get(nth.checked_sub(first)?));
        (answer, expected)
    });
    answers.collect()
}

/// Whether an event is of a line that the log had not confirmed when the others were answered. It
/// may be after the response's position.
fn is_unconfirmed(fact: &Fact, answers: &[Answer<'_>]) -> bool {
    answers.iter().any(|(answer, expected)| {
        let error = answer["error"].as_str().unwrap_or_default();
        error.contains("did not confirm")
            && expected.is_some_and(|expected| holds(&fact.data, &expected.data))
    })
}

/// Each line of a bulk write has its own response.
fn lines(note: &Note, happened: &[&Fact], answers: &[Answer<'_>], findings: &mut Findings) {
    for (answer, expected) in answers {
        let Some(expected) = expected else {
            findings.judge(LINES, false, &note.request, "a line that was sent", answer);
            continue;
        };
        let written = matches!(answer["status"].as_str(), Some("created" | "updated"));
        let there = happened
            .iter()
            .any(|fact| holds(&fact.data, &expected.data));
        let right = there || !written;
        findings.judge(LINES, right, &note.request, &expected.data, answer);
    }
}

type Fix = (u64, i64);

fn fix(data: &Value) -> Fix {
    let at = data["recorded_at"].as_str().unwrap_or_default();
    let at = chrono::DateTime::parse_from_rfc3339(at);
    let at = at.map(|at| at.timestamp_micros()).unwrap_or_default();
    (data["user_id"].as_u64().unwrap_or_default(), at)
}

/// Every fix in the log; none may be there twice, however often it was sent.
fn fixes(evidence: &Evidence<'_>, findings: &mut Findings) -> HashSet<Fix> {
    let mut fixes = HashSet::new();
    for fact in evidence.facts.of(Log::Locations) {
        let is_first = fixes.insert(fix(&fact.data));
        findings.judge(ONE_FIX, is_first, fact.place(), "once", "again");
    }
    fixes
}
