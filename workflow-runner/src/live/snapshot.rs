//! The newest positions, and the open calls for help, as snapshots show them.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::circles::{Circle, Circles, Viewer};
use event_log::Binding;
use futures::future::join_all;
use schemas::location::Updated;
use schemas::{AccountId, Event};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calls::Call;
use super::fan_out::FanOut;
use super::visibility::Visibility;

/// Positions, or calls, that are unsealed concurrently.
const SIDE_BY_SIDE: usize = 32;

/// A position that a snapshot may show.
#[derive(Debug)]
pub(super) struct Candidate {
    fix: Arc<Updated>,
}

#[derive(Deserialize)]
struct Personal {
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    user_id: AccountId,
    name: Option<String>,
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
    recorded_at: DateTime<Utc>,
}

impl Candidate {
    /// The newest positions of persons; `latest` finds one's, for the person themselves or for
    /// others.
    pub(super) fn of(
        viewer: &Viewer,
        persons: BTreeSet<AccountId>,
        latest: impl Fn(AccountId, bool) -> Option<Arc<Updated>>,
    ) -> Vec<Self> {
        let mut found: Vec<Self> = persons
            .into_iter()
            .filter_map(|account| latest(account, *viewer == Viewer::Account(account)))
            .map(|fix| Self { fix })
            .collect();
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.fix.recorded_at));
        found
    }

    async fn show(&self, fan_out: &FanOut) -> Option<Value> {
        let account = self.fix.user_id;
        let binding = Binding::Position(account, self.fix.recorded_at);
        let unsealed = fan_out.people().unseal(&binding, &self.fix.sealed).await?;
        let personal: Personal = serde_json::from_str(&unsealed)
            .inspect_err(|error| tracing::error!(%error, "A position cannot be read"))
            .ok()?;
        let shown = Shown {
            user_id: account,
            name: fan_out.people().name(account).await,
            lat: personal.lat,
            lng: personal.lng,
            accuracy: personal.accuracy,
            speed: personal.speed,
            place_name: personal.place_name,
            recorded_at: self.fix.recorded_at,
        };
        serde_json::to_value(shown).ok()
    }
}

/// All persons connected with a viewer.
pub(super) fn connected(viewer: &Viewer, circles: &Circles) -> BTreeSet<AccountId> {
    match viewer {
        Viewer::Account(account) => {
            let mut persons = circles.audience(*account);
            persons.insert(*account);
            persons
        }
        Viewer::Organization(org) => {
            let own = circles.of_organization(org);
            own.flat_map(Circle::members).collect()
        }
    }
}

/// The candidates that the viewer may see now, newest first.
pub(super) async fn show(
    fan_out: &FanOut,
    viewer: &Viewer,
    candidates: Vec<Candidate>,
) -> Vec<Value> {
    let mut shown: Vec<Option<Value>> = Vec::with_capacity(candidates.len());
    for some in candidates.chunks(SIDE_BY_SIDE) {
        shown.extend(join_all(some.iter().map(|candidate| candidate.show(fan_out))).await);
    }
    // Judged last, by everything currently in the log.
    fan_out.settle().await;
    let visibilities: Vec<Visibility> = candidates
        .iter()
        .map(|candidate| Visibility::of_position(&candidate.fix))
        .collect();
    let may_see = fan_out.check(viewer, visibilities.iter());
    let both = shown.into_iter().zip(may_see);
    both.filter_map(|(shown, may)| shown.filter(|_| may))
        .collect()
}

/// The calls that the viewer may see now, in the order given.
pub(super) async fn show_calls(fan_out: &FanOut, viewer: &Viewer, calls: Vec<Call>) -> Vec<Value> {
    if calls.is_empty() {
        return Vec::new();
    }
    let of = |call: Call| Some((Visibility::of(&call.recorded)?, call));
    let (visibilities, calls): (Vec<Visibility>, Vec<Call>) =
        calls.into_iter().filter_map(of).unzip();
    let mut shown: Vec<Value> = Vec::with_capacity(calls.len());
    for some in calls.chunks(SIDE_BY_SIDE) {
        shown.extend(join_all(some.iter().map(|call| show_call(fan_out, call))).await);
    }
    // Judged last, by everything currently in the log.
    fan_out.settle().await;
    let may_see = fan_out.check(viewer, visibilities.iter());
    let both = shown.into_iter().zip(may_see);
    both.filter_map(|(shown, may)| may.then_some(shown))
        .collect()
}

/// The data of the event, as in the channel, with the caller's name and whether somebody has seen
/// the call.
async fn show_call(fan_out: &FanOut, call: &Call) -> Value {
    let mut shown = fan_out.people().reveal(&call.recorded).await;
    if let (Event::SosTriggered(triggered), Some(data)) =
        (&call.recorded.event, shown.as_object_mut())
    {
        let name = fan_out.people().name(triggered.user_id).await;
        data.insert("name".to_owned(), json!(name));
        data.insert("acknowledged".to_owned(), json!(call.acknowledged));
    }
    shown
}
