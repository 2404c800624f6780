//! Claims: what is unique has one holder at a time.

use std::collections::HashMap;

use schemas::AggregateType;
use serde_json::Value;

use super::{Facts, Findings};

const CLAIMS: &str = "claims were taken only while nobody held them";
const ADDRESSES: &str = "an address belongs to one account";

pub(super) fn check(facts: &Facts, findings: &mut Findings) {
    let mut held: HashMap<&str, &Value> = HashMap::new();
    let mut addresses: HashMap<String, String> = HashMap::new();
    for fact in &facts.all {
        if fact.is_note() {
            continue;
        }
        let holder = &fact.data["holder"];
        match (fact.aggregate, fact.kind.as_str()) {
            (AggregateType::Claim, "claim.claimed") => {
                let before = held.insert(&fact.stream, holder);
                let free = before.is_none();
                let found = before.map(ToString::to_string).unwrap_or_default();
                findings.judge(CLAIMS, free, fact.place(), "nobody", found);
            }
            (AggregateType::Claim, "claim.released") => {
                held.remove(fact.stream.as_str());
            }
            // The address of a forgotten person cannot be read any more, and is free.
            (_, "account.registered") if !facts.is_of_the_forgotten(fact) => {
                let email = fact.data["email"].to_string();
                let found = addresses.insert(email.clone(), fact.place());
                let free = found.is_none();
                findings.judge(
                    ADDRESSES,
                    free,
                    email,
                    fact.place(),
                    found.unwrap_or_default(),
                );
            }
            _ => {}
        }
    }
}
