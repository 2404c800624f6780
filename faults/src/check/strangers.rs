//! The crowd: what it did affects only itself, and nobody is shown another's data.

use std::collections::HashMap;

use schemas::{AggregateType, Log};
use serde_json::Value;

use super::{Evidence, Fact, Findings};
use hostile::Dice;

const OWN: &str = "events that the crowd led to belong to the crowd";
const FEEDS: &str = "events of feeds that belong to who reads them";
const LISTS: &str = "rows of lists that belong to who reads them";

/// Domain of the addresses of the crowd's persons.
const CROWD: &str = "@crowd.example";

pub(super) async fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let Some(strangers) = evidence.strangers else {
        return;
    };
    let neighbour = &strangers.neighbour();
    findings.begin(OWN);
    for fact in &evidence.facts.all {
        if fact.trace.is_some_and(|trace| strangers.led_to(trace)) {
            let right = fact.org == neighbour.org || is_of_a_stranger(fact);
            findings.judge(OWN, right, fact.place(), &neighbour.org, &fact.data);
        }
    }
    let mut readers: Vec<(&str, &str)> = Vec::new();
    for org in &evidence.world.orgs {
        readers.push((&org.id, &org.key));
    }
    readers.push((&neighbour.org, &neighbour.key));
    for (org, key) in readers {
        feeds(evidence, org, key, findings).await;
        lists(evidence, org, key, findings).await;
    }
}

/// Accounts of the crowd's own, and their claims.
fn is_of_a_stranger(fact: &Fact) -> bool {
    match fact.aggregate {
        AggregateType::Claim => true,
        AggregateType::Account => {
            let email = fact.data["email"].as_str();
            email.is_none_or(|email| email.ends_with(CROWD))
        }
        _ => false,
    }
}

/// Everything the feeds show, compared by event id.
async fn feeds(evidence: &Evidence<'_>, org: &str, key: &str, findings: &mut Findings) {
    for (path, log) in [
        ("/api/v1/events", Log::Events),
        ("/api/v1/locations", Log::Locations),
    ] {
        let owners: HashMap<&str, &Fact> = evidence
            .facts
            .of(log)
            .map(|fact| (fact.id.as_str(), fact))
            .collect();
        let Some(lines) = whole_feed(evidence, key, path).await else {
            findings.judge(FEEDS, false, format!("{path} of {org}"), "a feed", "none");
            continue;
        };
        for line in lines {
            // What came after the log had been read to its end is unknown here.
            let position = line["position"].as_str();
            if position.is_some_and(|position| evidence.facts.is_later(position)) {
                continue;
            }
            let fact = owners.get(line["id"].as_str().unwrap_or_default());
            // Positions are stored with their person, and shown to those that person agreed to.
            let own = fact.is_some_and(|fact| fact.org == org || log == Log::Locations);
            let found = fact.map_or_else(|| line.to_string(), |fact| fact.place());
            findings.judge(FEEDS, own, format!("{path} of {org}"), org, found);
        }
    }
}

/// Reads a feed from its first event to its end, in small parts.
pub(super) async fn whole_feed(
    evidence: &Evidence<'_>,
    key: &str,
    path: &str,
) -> Option<Vec<Value>> {
    const PART: usize = 1_000;
    let mut dice = Dice::new(0);
    let mut lines: Vec<Value> = Vec::new();
    loop {
        let last = lines.last().and_then(|line| line["position"].as_str());
        let after = last.map(|last| format!("&after={last}"));
        let path = format!("{path}?limit={PART}{}", after.unwrap_or_default());
        let answer = evidence.client.read(&mut dice, key, &path, None).await?;
        let body = answer.is_success().then_some(answer.body)?;
        let part = String::from_utf8_lossy(&body);
        let part: Result<Vec<Value>, _> = part.lines().map(serde_json::from_str).collect();
        let part = part.ok()?;
        let is_last = part.len() < PART;
        lines.extend(part);
        if is_last {
            return Some(lines);
        }
    }
}

/// The first page of every list, against the fold's rows.
async fn lists(evidence: &Evidence<'_>, org: &str, key: &str, findings: &mut Findings) {
    for (path, table, id, column) in [
        ("/api/v1/leads", "leads", "id", "id"),
        ("/api/v1/orders", "orders", "id", "id"),
        ("/api/v1/clients", "clients", "id", "id"),
        ("/api/v1/webhooks", "webhooks", "id", "webhook_id"),
        ("/api/v1/keys", "api_keys", "keyId", "key_id"),
        (
            "/api/v1/workflows",
            "workflows",
            "workflowId",
            "workflow_id",
        ),
    ] {
        let path = format!("{path}?limit=100");
        let answer = evidence
            .client
            .read(&mut Dice::new(0), key, &path, None)
            .await;
        let answer = answer.map(|answer| answer.json()).unwrap_or_default();
        let Some(rows) = answer["data"].as_array() else {
            findings.judge(LISTS, false, format!("{path} of {org}"), "a list", answer);
            continue;
        };
        for row in rows {
            let key = format!("{org} {}", row[id].as_str().unwrap_or_default());
            let right = evidence.fold.table(table).contains_key(&key);
            let what = format!("{path} of {org}");
            findings.judge(
                LISTS,
                right,
                what,
                format!("a row of theirs by {column}"),
                row,
            );
        }
    }
}
