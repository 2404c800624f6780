//! What triggers workflows automatically: an event that one listens to triggers it once, and so
//! does each time of a schedule.

use std::collections::HashMap;

use chrono::{DateTime, Timelike as _, Utc};
use schemas::Log;
use serde_json::Value;

use super::{Evidence, Fact, Findings};
use crate::definitions::{CALLED, HEARD, LOWEST_SCORE};
use crate::world::text;

const HEARS: &str = "events that a workflow listens to started one run each";
const CALLS: &str = "calls for help that a workflow listens to started one run each";
const NO_OTHER: &str = "runs that an event started were of workflows that listened to it";
const TIMES: &str = "times of a schedule that started one run";
const DUE: &str = "runs of a schedule that began at one of its times";

/// The ranges of positions in which a workflow has listened.
type Listened = Vec<(u64, Option<u64>)>;

/// An organization and its workflow.
type Workflow<'a> = (&'a str, &'a str);

/// What workflows of a run of this tool listen to.
const LISTENED_TO: [&str; 2] = [HEARD, CALLED];

/// Who listened when, and what was triggered.
#[derive(Default)]
struct Seen<'a> {
    listened: HashMap<(Workflow<'a>, &'static str), Listened>,
    /// Runs by the event that they follow from.
    by_event: HashMap<(Workflow<'a>, &'a str), u32>,
    by_time: HashMap<(Workflow<'a>, &'a str), u32>,
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for check in [HEARS, CALLS, NO_OTHER, TIMES, DUE] {
        findings.begin(check);
    }
    let mut seen = Seen::default();
    let clocks_right = !evidence.done.clocks_jumped();
    let ours = |fact: &&Fact| evidence.world.orgs.iter().any(|org| org.id == fact.org);
    for fact in evidence.facts.of(Log::Events).filter(ours) {
        match fact.kind.as_str() {
            "workflow.saved" => seen.saved(fact),
            "workflow.triggered" => seen.triggered(fact, clocks_right, findings),
            _ => {}
        }
    }
    for fact in evidence.facts.of(Log::Events).filter(ours) {
        let has_score = fact.data["score"].as_u64() >= Some(LOWEST_SCORE);
        match fact.kind.as_str() {
            HEARD if has_score => seen.judge(HEARS, fact, true, findings),
            // Who has left or was forgotten meanwhile is not reported to workflows any more.
            CALLED => {
                let sure = !evidence.facts.may_be_withheld(fact);
                seen.judge(CALLS, fact, sure, findings);
            }
            _ => {}
        }
    }
    for ((_, event), times) in &seen.by_event {
        findings.judge(NO_OTHER, false, event, "no run", times);
    }
    for ((workflow, at), times) in &seen.by_time {
        let what = format!("{at} of {workflow:?}");
        findings.judge(TIMES, *times == 1, what, "once", times);
    }
}

impl<'a> Seen<'a> {
    fn saved(&mut self, fact: &'a Fact) {
        for kind in LISTENED_TO {
            let listened = self.listened.entry((workflow(fact), kind)).or_default();
            let open = listened.last_mut().filter(|(_, until)| until.is_none());
            match (open, listens(&fact.data, kind)) {
                (None, true) => listened.push((fact.sequence, None)),
                (Some((_, until)), false) => *until = Some(fact.sequence),
                (Some(_), true) | (None, false) => {}
            }
        }
    }

    fn triggered(&mut self, fact: &'a Fact, clocks_right: bool, findings: &mut Findings) {
        let payload = &fact.data["triggerPayload"];
        let workflow = workflow(fact);
        match payload["triggeredBy"].as_str() {
            Some("event") => {
                let cause = fact.cause.as_deref().unwrap_or_default();
                *self.by_event.entry((workflow, cause)).or_default() += 1;
            }
            Some("schedule") => {
                let at = payload["scheduledFor"].as_str().unwrap_or_default();
                *self.by_time.entry((workflow, at)).or_default() += 1;
                let due = at.parse::<DateTime<Utc>>().ok();
                let is_one = due.is_some_and(|due| due.second() == 0 && due.nanosecond() == 0);
                let has_come = !clocks_right || due <= Some(fact.time);
                findings.judge(DUE, is_one && has_come, fact.place(), fact.time, at);
            }
            _ => {}
        }
    }

    /// A workflow that still listens at the end must have been triggered. An event from before one
    /// stopped listening may or may not have reached it in time; so may one that is not `sure` to
    /// be shown to it.
    fn judge(&mut self, check: &'static str, event: &'a Fact, sure: bool, findings: &mut Findings) {
        for ((workflow, kind), listened) in &self.listened {
            if workflow.0 != event.org || *kind != event.kind {
                continue;
            }
            let by_it = (*workflow, event.id.as_str());
            let runs = self.by_event.remove(&by_it).unwrap_or_default();
            let in_force = listened
                .iter()
                .find(|(since, until)| is_within(event.sequence, *since, *until));
            let what = || format!("{} and {}", event.place(), workflow.1);
            match in_force {
                Some((_, None)) if sure => {
                    findings.judge(check, runs == 1, what(), "one run", runs);
                }
                Some(_) => findings.judge(check, runs <= 1, what(), "one or none", runs),
                None => findings.judge(NO_OTHER, runs == 0, what(), "no run", runs),
            }
        }
    }
}

fn workflow(fact: &Fact) -> Workflow<'_> {
    let id = fact.data["workflowId"].as_str();
    (&fact.org, id.unwrap_or_default())
}

fn is_within(sequence: u64, since: u64, until: Option<u64>) -> bool {
    since < sequence && until.is_none_or(|until| sequence < until)
}

/// Whether a saved workflow is triggered by events of a kind: leads only with the wanted scores.
fn listens(saved: &Value, kind: &str) -> bool {
    let steps = saved["steps"].as_array().into_iter().flatten();
    let mut triggers = steps.filter(|step| step["type"] == "TRIGGER");
    text(&saved["status"]) == "ACTIVE" && triggers.any(|trigger| trigger["on"]["event"] == kind)
}
