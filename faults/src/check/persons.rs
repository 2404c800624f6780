//! Persons: each crossing of a place once, each call for help once.

use std::collections::HashMap;

use serde_json::Value;

use super::{Evidence, Findings};

const CROSSINGS: &str = "places that were entered and left in turn";
const CALLS: &str = "calls for help that stand once in each place they belong to";

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    findings.begin(CROSSINGS);
    let mut inside: HashMap<(String, String), bool> = HashMap::new();
    let mut calls: HashMap<(&str, &str, &str), u32> = HashMap::new();
    for fact in &evidence.facts.all {
        match fact.kind.as_str() {
            "place.entered" | "place.left" => {
                let name = |value: &Value| value.to_string();
                let key = (name(&fact.data["user_id"]), name(&fact.data["place_id"]));
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
