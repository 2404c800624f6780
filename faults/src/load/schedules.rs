//! Schedules at the end: the last due time has started its run, and nothing starts any more while
//! everything is compared.

use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use reqwest::Method;
use serde_json::json;

use super::{Load, post};
use crate::definitions::{TICKS, definition};
use crate::nemesis::Done;
use crate::notes::{Complaint, ExpectedEvent, Outcome};
use crate::world::Org;
use hostile::Dice;

const LAST: &str = "schedules whose last time began its run";
/// How long a due run may take to appear, and a command to be accepted, once everything is ready:
/// the read models may have much to catch up with.
const TIMEOUT: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Disables every organization's schedule, once its last due time has been handled. If a clock was
/// ahead, a schedule continues after the times that the clock showed.
pub(crate) async fn end(load: &Load, dice: &mut Dice, done: &Done) {
    for org in &load.world.orgs {
        if !done.clocks_jumped() {
            judge(load, dice, org).await;
        }
        take_out_of_use(load, dice, org).await;
    }
}

async fn judge(load: &Load, dice: &mut Dice, org: &Org) {
    let due = Utc::now().duration_trunc(TimeDelta::minutes(1));
    let due = due.unwrap_or_default();
    let workflow = format!("/api/v1/workflows/{TICKS}");
    let runs = format!("{workflow}/runs?limit=1");
    let begun = Instant::now();
    let mut found = "no answer".to_owned();
    while begun.elapsed() < TIMEOUT {
        let saved = field(load, dice, org, &workflow, "/updatedAt").await;
        let last = "/data/0/triggerPayload/scheduledFor";
        let last = field(load, dice, org, &runs, last).await;
        match (saved, last) {
            // No time has been due yet.
            (Some(saved), _) if due <= saved => return,
            (_, Some(last)) if last >= due => return load.client.notes.right(LAST),
            (_, last) => found = format!("{last:?}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    load.client.notes.complain(Complaint {
        check: LAST,
        what: format!("{TICKS} of {}", org.id),
        expected: due.to_string(),
        found,
    });
}

/// A time in a response.
async fn field(
    load: &Load,
    dice: &mut Dice,
    org: &Org,
    path: &str,
    place: &str,
) -> Option<DateTime<Utc>> {
    let answer = load.client.read(dice, &org.key, path, None).await?.json();
    answer.pointer(place)?.as_str()?.parse().ok()
}

async fn take_out_of_use(load: &Load, dice: &mut Dice, org: &Org) {
    let mut body = definition(TICKS, TICKS, "");
    body["status"] = "PAUSED".into();
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        let expected = json!({"workflowId": TICKS, "status": "PAUSED"});
        let expected = vec![ExpectedEvent::once("workflow.saved", expected)];
        let path = format!("/api/v1/workflows/{TICKS}");
        let command = post("put workflow", &org.key, path, body.clone(), expected).by(Method::PUT);
        if let Outcome::Acknowledged { .. } = load.client.command(dice, command).await {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
