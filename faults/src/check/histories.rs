//! The history of each aggregate: every decision was based on its state at that point.

use std::collections::{HashMap, HashSet};

use super::{Fact, Facts, Findings};

const IDS: &str = "events that stand in the log once";
const RECORDS: &str = "records that were created, changed and deleted in turn";
const VERSIONS: &str = "workflows whose versions count up by one";
const MEMBERS: &str = "members that joined and left in turn";

const KINDS: [&str; 6] = ["company", "deal", "contact", "order", "lead", "client"];

pub(super) fn check(facts: &Facts, findings: &mut Findings) {
    let mut ids = HashSet::new();
    let mut there: HashMap<(&str, &str, &str), bool> = HashMap::new();
    let mut versions: HashMap<(&str, &str), u64> = HashMap::new();
    let mut members: HashMap<(String, String), bool> = HashMap::new();
    for fact in &facts.all {
        let is_first = ids.insert((fact.log, &fact.id));
        findings.judge(IDS, is_first, fact.place(), "once", "again");
        match fact.kind.split_once('.') {
            Some((kind, what)) if KINDS.contains(&kind) => {
                let was = there.entry((kind, &fact.org, &fact.stream)).or_default();
                let right = *was == (what != "created");
                let before = if *was { "there" } else { "not there" };
                findings.judge(RECORDS, right, fact.place(), "what fits", before);
                *was = what != "deleted";
            }
            Some(("workflow", "saved")) => version(fact, &mut versions, findings),
            Some(("circle", "member_joined")) => member(fact, true, &mut members, findings),
            Some(("circle", "member_left")) => member(fact, false, &mut members, findings),
            _ => {}
        }
    }
}

fn version<'a>(
    fact: &'a Fact,
    versions: &mut HashMap<(&'a str, &'a str), u64>,
    findings: &mut Findings,
) {
    let last = versions.entry((&fact.org, &fact.stream)).or_default();
    *last += 1;
    let found = &fact.data["version"];
    findings.judge(VERSIONS, found == *last, fact.place(), *last, found);
}

/// An organization's own part of the log also reports its members.
fn member(
    fact: &Fact,
    joins: bool,
    members: &mut HashMap<(String, String), bool>,
    findings: &mut Findings,
) {
    let place = format!("{} {}", fact.org, fact.stream);
    let was = members
        .entry((place, fact.data["user_id"].to_string()))
        .or_default();
    findings.judge(MEMBERS, *was != joins, fact.place(), !joins, *was);
    *was = joins;
}
