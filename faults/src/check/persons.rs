//! Persons: each crossing of a place once, each call for help once.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Evidence, Fact, Findings};

const CROSSINGS: &str = "places that were entered and left in turn";
const CALLS: &str = "calls for help that stand once in each place they belong to";

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    findings.begin(CROSSINGS);
    // By a person's membership in a circle, and the place.
    let mut inside: HashMap<(Member, usize, String), bool> = HashMap::new();
    let mut joined: HashMap<Member, Vec<DateTime<Utc>>> = HashMap::new();
    let mut calls: HashMap<(&str, &str, &str), u32> = HashMap::new();
    for fact in &evidence.facts.all {
        match fact.kind.as_str() {
            "circle.member_joined" => joined.entry(member(fact)).or_default().push(fact.time),
            // A crossing belongs to the membership during which it happened, however late it is
            // reported: it may come after its person's leaving, or even their return.
            "place.entered" | "place.left" if !evidence.facts.is_of_the_forgotten(fact) => {
                let member = member(fact);
                let at = fact.recorded_at();
                let joins = joined.get(&member).into_iter().flatten();
                let membership = joins.filter(|since| Some(**since) <= at).count();
                let key = (member, membership, fact.data["place_id"].to_string());
                let entered = fact.kind == "place.entered";
                let before = inside.insert(key, entered).unwrap_or_default();
                findings.judge(CROSSINGS, before != entered, fact.place(), !entered, before);
            }
            "sos.triggered" => {
                let times = calls
                    .entry((&fact.org, &fact.stream, "triggered"))
                    .or_default();
                *times += 1;
                findings.judge(CALLS, *times == 1, fact.place(), "once", times);
            }
            "sos.resolved" => {
                let times = calls
                    .entry((&fact.org, &fact.stream, "resolved"))
                    .or_default();
                *times += 1;
                findings.judge(CALLS, *times == 1, fact.place(), "once", times);
            }
            _ => {}
        }
    }
}

/// A person and a circle.
type Member = [String; 2];

fn member(fact: &Fact) -> Member {
    ["user_id", "circle_id"].map(|field| fact.data[field].to_string())
}
