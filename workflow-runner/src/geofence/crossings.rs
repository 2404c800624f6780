//! Considers one position: at which places it shows a crossing, and records that once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::circles::Circles;
use domain::presence::{self, Crossing, Fix, LastCrossing, Place};
use event_log::{AppendError, Binding, EventLog, Expected, ReadError, VaultError, Write};
use futures::future::join_all;
use schemas::circle::CircleOwner;
use schemas::location::Updated;
use schemas::{
    AccountId, AggregateType, CircleId, Context, Event, EventId, NewEvent, OrgId, PlaceId,
    Recorded, SYSTEM_ORG, Sealed, StreamId,
};
use serde::Deserialize;
use serde_json::json;
use service::Clock;
use tokio::time::timeout;

use super::in_order::{At, Consider};
use crate::people::People;
use crate::retry::retry_while;

/// Presences, and places, that are held in memory; beyond this they are read again.
const AT_HAND: usize = 200_000;

/// Records crossings.
pub(super) struct Crossings {
    log: EventLog,
    people: People,
    clock: Arc<dyn Clock>,
    margin_m: f64,
    presences: Mutex<HashMap<StreamId, Presence>>,
    places: Mutex<HashMap<PlaceId, Arc<Place>>>,
}

/// The last crossing recorded of a person at a place, and its sequence.
type Presence = Option<(LastCrossing, u64)>;

/// The log currently takes none of an organization's appends.
struct Away;

/// A place where a person's crossings are recorded.
struct Watched {
    circle: CircleId,
    place: PlaceId,
    by: AccountId,
    sealed: Sealed,
    stream: StreamId,
    /// When the person joined: crossings recorded before that no longer count.
    since: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Coordinates {
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
}

impl Crossings {
    pub(super) fn new(log: EventLog, people: People, clock: Arc<dyn Clock>, margin_m: f64) -> Self {
        Self {
            log,
            people,
            clock,
            margin_m,
            presences: Mutex::default(),
            places: Mutex::default(),
        }
    }

    /// Waits until everything currently in the log is known.
    pub(super) async fn settle(&self) {
        self.people.settle().await;
    }

    /// Records the crossings at an organization's places; returns it if that takes too long, or the
    /// log takes none of them at present.
    async fn cross_all(
        &self,
        cause: &Recorded,
        fix: &Fix,
        org: &OrgId,
        watched: Vec<&Watched>,
        max_wait: Duration,
    ) -> Option<OrgId> {
        let crossing = async {
            for watched in watched {
                if let Some(place) = self.place(watched).await {
                    self.cross(cause, fix, watched, &place).await?;
                }
            }
            Ok::<(), Away>(())
        };
        match timeout(max_wait, crossing).await {
            Ok(Ok(())) => None,
            Ok(Err(Away)) | Err(_) => Some(org.clone()),
        }
    }

    async fn fix(&self, updated: &Updated) -> Option<Fix> {
        let at = Binding::Position(updated.user_id, updated.recorded_at);
        let text = self.people.unseal(&at, &updated.sealed).await?;
        let Coordinates { lat, lng, accuracy } = serde_json::from_str(&text)
            .inspect_err(|error| tracing::error!(%error, "A position cannot be read"))
            .ok()?;
        Some(Fix {
            lat,
            lng,
            accuracy,
            recorded_at: updated.recorded_at,
        })
    }

    async fn place(&self, watched: &Watched) -> Option<Arc<Place>> {
        if let Some(place) = lock(&self.places).get(&watched.place) {
            return Some(place.clone());
        }
        let of = Binding::WatchedPlace(watched.by, watched.place.clone());
        let text = self.people.unseal(&of, &watched.sealed).await?;
        let place: Place = serde_json::from_str(&text)
            .inspect_err(|error| tracing::error!(%error, "A place cannot be read"))
            .ok()?;
        let place = Arc::new(place);
        let mut places = lock(&self.places);
        if places.len() >= AT_HAND {
            places.clear();
        }
        places.insert(watched.place.clone(), place.clone());
        Some(place)
    }

    /// Records a crossing if the fix shows one.
    async fn cross(
        &self,
        cause: &Recorded,
        fix: &Fix,
        watched: &Watched,
        place: &Place,
    ) -> Result<(), Away> {
        loop {
            let Some(presence) = self.presence(&watched.stream).await else {
                return Ok(());
            };
            let last = presence.map(|(last, _)| last);
            let last = last.filter(|last| last.recorded_at >= watched.since);
            let Some(crossing) = presence::decide(last, place, fix, self.margin_m) else {
                return Ok(());
            };
            let expected = Expected::after(presence.map(|(_, sequence)| sequence));
            let event = self.event(cause, fix, watched, place, crossing).await;
            let Some(event) = event else { return Ok(()) };
            let write = Write {
                stream: watched.stream.clone(),
                expected,
                events: vec![event],
            };
            match self.log.commit(write.into()).await {
                Ok(position) => {
                    let recorded_at = fix.recorded_at;
                    let last = LastCrossing {
                        crossing,
                        recorded_at,
                    };
                    let presence = Some((last, position.sequence()));
                    lock(&self.presences).insert(watched.stream.clone(), presence);
                    return Ok(());
                }
                // Another process recorded it, or the answer was lost: what is stored counts.
                Err(AppendError::Conflict) => {
                    lock(&self.presences).remove(&watched.stream);
                }
                Err(error) if error.passes() => {
                    lock(&self.presences).remove(&watched.stream);
                    return Err(Away);
                }
                Err(error) => {
                    let stream = &watched.stream;
                    tracing::error!(
                        %stream,
                        %error,
                        "Cannot record that somebody entered or left a place"
                    );
                    return Ok(());
                }
            }
        }
    }

    async fn event(
        &self,
        cause: &Recorded,
        fix: &Fix,
        watched: &Watched,
        place: &Place,
        crossing: Crossing,
    ) -> Option<NewEvent> {
        let Event::LocationUpdated(updated) = &cause.event else {
            return None;
        };
        let name = json!({"name": place.name}).to_string();
        let sealing = Binding::Crossing {
            account: updated.user_id,
            circle: watched.circle.clone(),
            place: watched.place.clone(),
            at: fix.recorded_at,
        };
        let sealed = retry_while(
            || self.log.vault().seal(&sealing, &name),
            VaultError::passes,
        );
        let sealed = sealed.await.ok()?;
        let data = schemas::presence::Crossing {
            user_id: updated.user_id,
            circle_id: watched.circle.clone(),
            place_id: watched.place.clone(),
            recorded_at: fix.recorded_at,
            sealed,
        };
        let (event, way) = match crossing {
            Crossing::Entered => (Event::PlaceEntered(data), "entered"),
            Crossing::Left => (Event::PlaceLeft(data), "left"),
        };
        // The same id however often and by whichever process it is tried.
        let parts = [
            way.as_bytes(),
            watched.stream.id.as_bytes(),
            cause.id.0.as_bytes(),
        ];
        Some(NewEvent {
            id: EventId(self.log.keyring().derived_uuid("crossing", &parts)),
            time: self.clock.now(),
            event,
            context: Context::caused_by(cause),
            receipt: None,
        })
    }

    /// What was recorded last; `None` if that cannot be read.
    async fn presence(&self, stream: &StreamId) -> Option<Presence> {
        if let Some(presence) = lock(&self.presences).get(stream) {
            return Some(*presence);
        }
        self.load(std::slice::from_ref(stream)).await;
        lock(&self.presences).get(stream).copied()
    }

    /// Reads those of a person's presences that are not in memory, all at once.
    async fn have_at_hand(&self, watched: &[Watched]) {
        let missing: Vec<StreamId> = {
            let mut presences = lock(&self.presences);
            if presences.len() >= AT_HAND {
                presences.clear();
            }
            let streams = watched.iter().map(|watched| &watched.stream);
            let missing = streams.filter(|stream| !presences.contains_key(stream));
            missing.cloned().collect()
        };
        if !missing.is_empty() {
            self.load(&missing).await;
        }
    }

    async fn load(&self, streams: &[StreamId]) {
        let lasts = match retry_while(
            || self.log.catch_up().last_of_each(streams),
            ReadError::passes,
        )
        .await
        {
            Ok(lasts) => lasts,
            Err(error) => return tracing::error!(%error, "Cannot read who is at a place"),
        };
        let found = streams
            .iter()
            .cloned()
            .zip(lasts.iter().map(|last| presence_of(last.as_ref())));
        lock(&self.presences).extend(found);
    }

    /// Forgets what is in memory: another process may record crossings now.
    pub(super) fn begin_again(&self) {
        lock(&self.presences).clear();
    }
}

impl Consider for Crossings {
    async fn consider(&self, recorded: &Recorded, at: At<'_>) -> Vec<OrgId> {
        let Event::LocationUpdated(updated) = &recorded.event else {
            return Vec::new();
        };
        let now = self.clock.now();
        let mut watched = self
            .people
            .read(|directory| watched(directory.circles(), updated, now));
        watched.retain(|watched| at.includes(&watched.stream.org));
        if watched.is_empty() {
            return Vec::new();
        }
        let Some(fix) = self.fix(updated).await else {
            return Vec::new();
        };
        self.have_at_hand(&watched).await;
        let mut by_org: BTreeMap<&OrgId, Vec<&Watched>> = BTreeMap::new();
        for watched in &watched {
            let of_org = by_org.entry(&watched.stream.org).or_default();
            of_org.push(watched);
        }
        let max_wait = at.max_wait();
        let crossed = by_org
            .into_iter()
            .map(|(org, watched)| self.cross_all(recorded, &fix, org, watched, max_wait));
        join_all(crossed).await.into_iter().flatten().collect()
    }
}

fn presence_of(last: Option<&Recorded>) -> Presence {
    let last = last?;
    let (crossing, data) = match &last.event {
        Event::PlaceEntered(data) => (Crossing::Entered, data),
        Event::PlaceLeft(data) => (Crossing::Left, data),
        _ => return None,
    };
    let recorded_at = data.recorded_at;
    let crossing = LastCrossing {
        crossing,
        recorded_at,
    };
    Some((crossing, last.sequence))
}

/// The places where a position may show a crossing: those of circles that its person is in and has
/// been in since before it, unless they hide or hid. Positions from before they left and came back
/// do not count, in whatever order they are considered.
fn watched(circles: &Circles, fix: &Updated, now: DateTime<Utc>) -> Vec<Watched> {
    let (account, at) = (fix.user_id, fix.recorded_at);
    if circles.hides(account, now) || circles.hid(account, at) {
        return Vec::new();
    }
    let places = circles.places_of(account);
    places
        .filter(|(_, place)| place.added_at <= at)
        .filter_map(|(circle, place)| {
            let since = circle.member_since(account).filter(|since| *since <= at)?;
            let org = match &circle.owner {
                CircleOwner::Organization(org) => org.clone(),
                CircleOwner::Account(_) => OrgId::from(SYSTEM_ORG),
            };
            let id = format!("{}-{account}", place.id);
            Some(Watched {
                circle: circle.id.clone(),
                place: place.id.clone(),
                by: place.by,
                sealed: place.sealed.clone(),
                stream: StreamId::new(&org, AggregateType::Presence, id),
                since,
            })
        })
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that holds these locks can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
