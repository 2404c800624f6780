//! Sockets: over all of their connections, every event once and in order.

use std::collections::HashSet;

use event_log::Position;
use schemas::{AggregateType, Log};

use super::{Evidence, Fact, Facts, Findings};
use crate::readers::{Heard, Seen};

const GAPLESS: &str = "events that sockets were to see were seen";
const ONCE: &str = "frames of sockets came once and in order";
const NEVER_RESET: &str = "subscriptions went on where they were";

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for heard in evidence.heard {
        let expected = expected(evidence, heard);
        one(heard, &expected, findings);
    }
}

fn sequence(position: &str) -> u64 {
    position
        .parse::<Position>()
        .map(Position::sequence)
        .unwrap_or_default()
}

/// Whether a subscriber of an organization must see an event.
fn is_of_org(heard: &Heard, fact: &Fact, facts: &Facts) -> bool {
    if fact.log != Log::Events || fact.org != heard.who || !fact.public {
        return false;
    }
    match heard.channel.as_str() {
        "runs" => fact.aggregate == AggregateType::Run,
        // Who may still be informed about a person is decided at the time of sending.
        "events" => !facts.may_be_withheld(fact),
        _ => false,
    }
}

/// Whether a subscriber of an organization has not seen the last event meant for it.
pub(crate) fn is_behind(heard: &Heard, facts: &Facts) -> bool {
    let mut newest_first = facts.all.iter().rev();
    let last = newest_first.find(|fact| is_of_org(heard, fact, facts));
    let seen = heard.seen.iter().rev().find_map(|seen| match seen {
        Seen::Event { position, .. } => Some(sequence(position)),
        Seen::Conflated { .. } | Seen::Reset => None,
    });
    last.is_some_and(|last| seen.unwrap_or_else(|| sequence(&heard.from)) < last.sequence)
}

/// The events that the subscriber had to see.
fn expected<'a>(evidence: &Evidence<'a>, heard: &Heard) -> Vec<&'a Fact> {
    let from = sequence(&heard.from);
    let steady = || evidence.world.persons.iter().filter(|person| person.steady);
    // Family members see of each other what happened once all of them had joined.
    let made = evidence.facts.made_up_to.get(&Log::Events);
    let joined = evidence
        .facts
        .of(Log::Events)
        .find(|fact| Some(&fact.sequence) == made);
    let joined = joined.map(|fact| fact.time);
    let of_family = |fact: &Fact| {
        let of = fact.data["user_id"].as_u64();
        fact.log == Log::Locations
            && steady().any(|person| Some(person.id) == of)
            && fact.recorded_at() > joined
    };
    let is_family = steady().any(|person| person.id.to_string() == heard.who);
    let all = evidence
        .facts
        .all
        .iter()
        .filter(|fact| match heard.channel.as_str() {
            // What others see of each other changes all the time.
            "locations" => is_family && of_family(fact),
            _ => is_of_org(heard, fact, evidence.facts),
        });
    all.filter(|fact| fact.sequence > from).collect()
}

fn one(heard: &Heard, expected: &[&Fact], findings: &mut Findings) {
    let who = format!("{} on {}", heard.who, heard.channel);
    let mut seen = HashSet::new();
    let mut left_out = Vec::new();
    let (mut last, mut resets) = (sequence(&heard.from), 0);
    for frame in &heard.seen {
        match frame {
            Seen::Event { position, kind, .. } => {
                let at = sequence(position);
                let what = format!("{kind} at {position} to {who}");
                findings.judge(ONCE, at > last, what, format!("behind {last}"), at);
                last = last.max(at);
                seen.insert(at);
            }
            Seen::Conflated { from, to } => left_out.push((sequence(from), sequence(to))),
            Seen::Reset => resets += 1,
        }
    }
    findings.judge(NEVER_RESET, resets == 0, &who, "no reset", resets);
    for fact in expected {
        let at = fact.sequence;
        let there = seen.contains(&at) || left_out.iter().any(|(from, to)| *from < at && at <= *to);
        findings.judge(GAPLESS, there, fact.place(), &who, "not seen");
    }
}
