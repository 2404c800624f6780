//! Persons: each crossing of a place once, each call for help once.

use std::collections::HashMap;

use serde_json::Value;

use super::{Evidence, Findings};

const CROSSINGS: &str = "places that were entered and left in turn";
const CALLS: &str = "calls for help that stand once in each place they belong to";

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    findings.begin(CROSSINGS);
    // By person, circle and place.
    let mut inside: HashMap<[String; 3], bool> = HashMap::new();
    let mut calls: HashMap<(&str, &str, &str), u32> = HashMap::new();
    let name = |value: &Value| value.to_string();
    for fact in &evidence.facts.all {
        match fact.kind.as_str() {
            "place.entered" | "place.left" => {
                let key = ["user_id", "circle_id", "place_id"].map(|field| name(&fact.data[field]));
                let entered = fact.kind == "place.entered";
                let before = inside.insert(key, entered).unwrap_or_default();
                findings.judge(CROSSINGS, before != entered, fact.place(), !entered, before);
            }
            // Whoever comes back to a circle is told of anew.
            "circle.member_left" | "circle.member_joined" => {
                let [user, circle] = ["user_id", "circle_id"].map(|field| name(&fact.data[field]));
                inside.retain(|[known, of, _], _| *known != user || *of != circle);
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
