//! Webhooks: what was due was delivered at least once, under one id.

use std::collections::{HashMap, HashSet};

use schemas::Log;

use super::{Facts, Findings};
use crate::check::Evidence;
use crate::readers::Arrived;
use crate::world::text;

const DELIVERED: &str = "deliveries that were due arrived";
const ONE_ID: &str = "deliveries that kept one id";
const WANTED: &str = "deliveries that the webhook had asked for";

/// A webhook according to the log.
struct Hook {
    path: String,
    /// Its wanted types, each from an event on; `None` while it is disabled.
    wishes: Vec<(u64, Option<Vec<String>>)>,
    /// Whether its owner has asked for a replay.
    replayed: bool,
    deleted: bool,
}

impl Hook {
    fn wants(&self, sequence: u64, kind: &str) -> bool {
        let in_force = self.wishes.iter().rfind(|(since, _)| *since < sequence);
        let patterns = in_force.and_then(|(_, wish)| wish.as_ref());
        patterns.is_some_and(|patterns| is_among(patterns, kind))
    }

    /// Whether it may get an event: a replay sends what it wants at that time.
    fn may_get(&self, sequence: u64, kind: &str) -> bool {
        let mut ever = self.wishes.iter().filter_map(|(_, wish)| wish.as_ref());
        self.wants(sequence, kind) || self.replayed && ever.any(|patterns| is_among(patterns, kind))
    }

    /// Whether nothing has stopped it after this event: pending deliveries are not sent to a
    /// webhook that is disabled or deleted.
    fn goes_on_after(&self, sequence: u64) -> bool {
        let later = self.wishes.iter().filter(|(since, _)| *since > sequence);
        !self.deleted && later.into_iter().all(|(_, wish)| wish.is_some())
    }
}

fn is_among(patterns: &[String], kind: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, kind))
}

fn matches(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => kind.starts_with(start),
        None => pattern == kind,
    }
}

/// Every webhook, by organization.
fn hooks<'a>(facts: &'a Facts, receiver: &str) -> Vec<(&'a str, Hook)> {
    let mut hooks: Vec<(&str, Hook)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for fact in facts.of(Log::Events) {
        let wish = || {
            let events = fact.data["events"].as_array().into_iter().flatten();
            events.map(text).collect::<Vec<_>>()
        };
        let known = places.get(fact.stream.as_str()).copied();
        match (fact.kind.as_str(), known) {
            ("webhook.created", _) => {
                places.insert(&fact.stream, hooks.len());
                let url = text(&fact.data["url"]);
                let path = url.strip_prefix(receiver).unwrap_or(&url).to_owned();
                let wishes = vec![(fact.sequence, Some(wish()))];
                hooks.push((
                    &fact.org,
                    Hook {
                        path,
                        wishes,
                        replayed: false,
                        deleted: false,
                    },
                ));
            }
            ("webhook.updated", Some(place)) => {
                let enabled = fact.data["status"] == "ENABLED";
                let wish = enabled.then(wish);
                hooks[place].1.wishes.push((fact.sequence, wish));
            }
            ("webhook.disabled", Some(place)) => {
                hooks[place].1.wishes.push((fact.sequence, None));
            }
            ("webhook.replay_requested", Some(place)) => hooks[place].1.replayed = true,
            ("webhook.deleted", Some(place)) => hooks[place].1.deleted = true,
            _ => {}
        }
    }
    hooks
}

/// The events that every webhook was due to get, each with the webhook's path.
fn due<'a>(facts: &'a Facts, receiver: &str) -> Vec<(String, &'a super::Fact)> {
    let mut due = Vec::new();
    for (org, hook) in hooks(facts, receiver) {
        if !hook.path.starts_with('/') {
            continue; // It is another receiver's.
        }
        for fact in facts.of(Log::Events) {
            let is_for_it = fact.public && fact.org == org && !facts.may_be_withheld(fact);
            if is_for_it
                && hook.wants(fact.sequence, &fact.kind)
                && hook.goes_on_after(fact.sequence)
            {
                due.push((hook.path.clone(), fact));
            }
        }
    }
    due
}

fn taken(arrived: &[Arrived]) -> HashSet<(&str, u64)> {
    let taken = arrived.iter().filter(|one| one.taken);
    taken
        .map(|one| (one.path.as_str(), sequence(&one.position)))
        .collect()
}

fn sequence(position: &str) -> u64 {
    let position = position.parse::<event_log::Position>();
    position
        .map(event_log::Position::sequence)
        .unwrap_or_default()
}

/// Number of deliveries that are due and have not arrived.
pub(crate) fn undelivered(facts: &Facts, arrived: &[Arrived], receiver: &str) -> usize {
    let taken = taken(arrived);
    let due = due(facts, receiver);
    let is_missing =
        |(path, fact): &&(String, &super::Fact)| !taken.contains(&(path.as_str(), fact.sequence));
    due.iter().filter(is_missing).count()
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let taken = taken(evidence.arrived);
    for (path, fact) in due(evidence.facts, evidence.receiver) {
        let there = taken.contains(&(path.as_str(), fact.sequence));
        findings.judge(
            DELIVERED,
            there,
            format!("{} to {path}", fact.place()),
            "delivered",
            "not",
        );
    }
    let mut ids: HashMap<(&str, &str), &str> = HashMap::new();
    let to_hooks = evidence
        .arrived
        .iter()
        .filter(|one| one.path.starts_with("/hook/"));
    for one in to_hooks.clone() {
        let first = ids.entry((&one.path, &one.position)).or_insert(&one.id);
        let what = format!("{} at {}", one.path, one.position);
        findings.judge(ONE_ID, *first == one.id, what, first, &one.id);
    }
    let hooks = hooks(evidence.facts, evidence.receiver);
    let events: HashMap<u64, &super::Fact> = evidence
        .facts
        .of(Log::Events)
        .map(|fact| (fact.sequence, fact))
        .collect();
    for one in to_hooks.filter(|one| one.position.starts_with('e')) {
        let fact = events.get(&sequence(&one.position));
        if fact.is_none() && evidence.facts.is_forgotten_run(&one.run) {
            continue;
        }
        let wanted = fact.is_some_and(|fact| {
            let theirs = |(org, hook): &&(&str, Hook)| *org == fact.org && hook.path == one.path;
            let hook = hooks.iter().find(theirs);
            hook.is_some_and(|(_, hook)| hook.may_get(fact.sequence, &fact.kind))
        });
        let what = format!("{} at {}", one.path, one.position);
        let found = fact.map(|fact| fact.place()).unwrap_or_default();
        findings.judge(WANTED, wanted, what, "an event it wants", found);
    }
}
