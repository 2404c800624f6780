//! The checker. It knows only what clients recorded and what is in the log.

mod answers;
mod claims;
mod commands;
mod connected;
mod exports;
mod exports_meanwhile;
mod facts;
mod findings;
mod fold;
mod forgetting;
mod histories;
mod limits;
mod models;
mod persons;
mod runs;
mod sockets;
mod steps;
mod strangers;
mod triggers;
mod verify;
mod visibility;
mod waits;
mod webhooks;

use hostile::Tally;
use serde_json::Value;

pub(crate) use facts::{Fact, Facts};
pub(crate) use findings::{Findings, Wrong};
pub(crate) use fold::Fold;
pub(crate) use models::check as read_models;
pub(crate) use sockets::is_behind;
pub(crate) use verify::verify;
pub(crate) use webhooks::undelivered;

use crate::client::Client;
use crate::nemesis::Done;
use crate::readers::{Arrived, Heard};
use crate::strangers::Strangers;
use crate::world::World;

/// The results of a run for the checker.
pub(crate) struct Evidence<'a> {
    pub(crate) client: &'a Client,
    pub(crate) world: &'a World,
    pub(crate) facts: &'a Facts,
    pub(crate) fold: &'a Fold,
    pub(crate) arrived: &'a [Arrived],
    pub(crate) heard: &'a [Heard],
    pub(crate) done: &'a Done,
    pub(crate) database: &'a str,
    /// The receiver's address.
    pub(crate) receiver: &'a str,
    pub(crate) strangers: Option<&'a Strangers>,
    /// The responses that the crowd got.
    pub(crate) tally: Option<&'a Tally>,
}

impl Evidence<'_> {
    /// Whether a request of the crowd led to an event. [`strangers`] judges which ones may.
    fn is_the_crowds(&self, fact: &Fact) -> bool {
        let led_to = |trace| self.strangers.is_some_and(|crowd| crowd.led_to(trace));
        fact.trace.is_some_and(led_to)
    }

    /// Whether an organization is the hostile tenant.
    pub(crate) fn is_hostile(&self, org: &str) -> bool {
        let neighbour = self.world.neighbour.as_ref();
        neighbour.is_some_and(|neighbour| neighbour.org == org)
    }
}

/// Checks everything against everything.
pub(crate) async fn all(evidence: &Evidence<'_>) -> Findings {
    let mut findings = Findings::default();
    findings.readers(&evidence.client.notes);
    commands::check(evidence, &mut findings);
    claims::check(evidence.facts, &mut findings);
    histories::check(evidence.facts, &mut findings);
    runs::check(evidence, &mut findings);
    triggers::check(evidence, &mut findings);
    waits::check(evidence, &mut findings);
    steps::check(evidence, &mut findings);
    persons::check(evidence, &mut findings);
    limits::check(evidence, &mut findings);
    webhooks::check(evidence, &mut findings);
    sockets::check(evidence, &mut findings);
    visibility::check(evidence, &mut findings);
    exports_meanwhile::check(evidence, &mut findings);
    read_models(evidence.database, evidence.fold, &mut findings).await;
    // Previously limited callers are free again.
    tokio::time::sleep(limits::WINDOW).await;
    answers::check(evidence, &mut findings).await;
    exports::check(evidence, &mut findings).await;
    forgetting::check(evidence, &mut findings).await;
    strangers::check(evidence, &mut findings).await;
    findings
}

/// Whether a value contains another one: every expected field, each equal. Times and numbers are
/// compared regardless of their notation.
pub(crate) fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected.iter().all(|(name, value)| {
            found
                .get(name)
                .map_or(value.is_null(), |found| holds(found, value))
        }),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(one, other)| holds(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one
                    .as_f64()
                    .zip(other.as_f64())
                    .is_some_and(|(a, b)| same(a, b))
        }
        (Value::String(one), Value::String(other)) => one == other || same_time(one, other),
        _ => found == expected,
    }
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= f64::EPSILON * one.abs().max(other.abs())
}

fn same_time(one: &str, other: &str) -> bool {
    let micros = |text: &str| {
        let time = chrono::DateTime::parse_from_rfc3339(text).ok()?;
        Some(time.timestamp_micros())
    };
    micros(one).is_some_and(|at| micros(other) == Some(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_expected_must_be_there_and_equal() {
        let found = json!({"a": 1, "b": {"c": "x", "d": [1.0, 2]}, "at": "2026-01-01T00:00:00Z"});
        assert!(holds(&found, &json!({"b": {"d": [1, 2.0]}})));
        assert!(holds(
            &found,
            &json!({"at": "2026-01-01T01:00:00+01:00", "none": null})
        ));
        assert!(!holds(&found, &json!({"a": 2})));
        assert!(!holds(&found, &json!({"b": {"d": [1]}})));
        assert!(!holds(&found, &json!({"e": 1})));
    }
}
