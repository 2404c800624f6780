//! Crossings of places: each is reported once, whoever watches and whichever process dies.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use event_log::CheckpointBucket;
use futures::TryStreamExt as _;
use schemas::Event;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use workflow_runner::geofence::{self, Dependencies, GeofenceSettings};
use workflow_runner::leases::{Group, Work};
use workflow_runner::people::People;

use crate::people::{Circle, Person, StreamOf};
use crate::support::{World, eventually, unused_prefix};

const LEASE: Duration = Duration::from_secs(1);
/// Degrees of latitude, about.
const METRE: f64 = 1.0 / 111_195.0;

/// A process that watches places.
struct Process {
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Process {
    async fn start(world: &World) -> Self {
        Self::with(world, LEASE).await
    }

    async fn with(world: &World, lease: Duration) -> Self {
        let (people, tail) = People::start(&world.log).await.unwrap();
        let group = Group::join(&world.log, lease).await.unwrap();
        let dependencies = Dependencies {
            log: world.log.clone(),
            people: people.clone(),
            clock: world.clock.clone(),
            leases: group.leases(Work::Geofence),
            settings: GeofenceSettings::default(),
        };
        let stop = world.shutdown.child_token();
        let watching = geofence::run(dependencies, stop.clone());
        let ended = tokio::spawn(async move {
            tokio::select! {
                ended = watching => ended.unwrap(),
                error = people.follow(tail) => panic!("{error}"),
            }
            group.leave().await;
        });
        Self { stop, ended }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.ended.await.unwrap();
    }

    /// Ends it without giving up its leases.
    fn kill(self) {
        self.ended.abort();
    }
}

impl World {
    /// The crossings recorded for a person at a place.
    async fn crossings(&self, place: &StreamOf, person: &Person) -> Vec<&'static str> {
        let events = self.events_of(&place.person(person)).await;
        let way = |event: &Event| match event {
            Event::PlaceEntered(_) => "entered",
            Event::PlaceLeft(_) => "left",
            _ => "something else",
        };
        events.iter().map(way).collect()
    }

    async fn told(&self, place: &StreamOf, person: &Person, expected: &[&str]) {
        eventually("crossings to be told", async || {
            self.crossings(place, person).await.len() >= expected.len()
        })
        .await;
        assert_eq!(self.crossings(place, person).await, expected);
    }
}

/// A person in a circle who has entered its place, as recorded by a process that has ended since.
async fn told_and_gone(world: &World) -> (Person, Circle, StreamOf) {
    let access = world.access().await;
    let ben = world.person(&access, "Ben").await;
    let circle = world.circle(&[&ben]).await;
    let place = world.place(&circle, &ben, 10.0).await;
    let process = Process::start(world).await;
    world.fix(&ben, 10.0, "in").await;
    world.told(&place, &ben, &["entered"]).await;
    process.stop().await;
    (ben, circle, place)
}

#[tokio::test]
async fn each_crossing_is_reported_once_by_any_number_of_processes() {
    let world = World::new().await;
    let access = world.access().await;
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Process::start(&world).await);
    }
    let mut everybody = Vec::new();
    for nth in 0..8 {
        let person = world.person(&access, &format!("P{nth}")).await;
        let circle = world.circle(&[&person]).await;
        let place = world.place(&circle, &person, 10.0).await;
        everybody.push((person, place));
    }
    // Outside, in, jitter at the edge, out.
    for metres in [500.0, 20.0, 105.0, 95.0, 115.0, 90.0, 400.0] {
        for (person, _) in &everybody {
            world.fix(person, 10.0 + metres * METRE, "on the way").await;
        }
        if metres > 100.0 && metres < 110.0 {
            // One process dies on the way.
            processes.pop().unwrap().kill();
        }
    }
    for (person, place) in &everybody {
        world.told(place, person, &["entered", "left"]).await;
    }
    // The person who crossed keeps the place's name.
    let (person, place) = &everybody[0];
    let last = world
        .log
        .last(&place.person(person))
        .await
        .unwrap()
        .unwrap();
    let shown = world.log.reveal(&last.event).await.unwrap();
    assert_eq!(shown["name"], "School");
    assert_eq!(shown["user_id"], person.id.0);
    for process in processes {
        process.stop().await;
    }
}

#[tokio::test]
async fn crossings_while_no_process_ran_are_reported_afterwards() {
    let world = World::new().await;
    let access = world.access().await;
    let person = world.person(&access, "Anna").await;
    let circle = world.org_circle(&[&person]).await;
    let place = world.place(&circle, &person, 10.0).await;
    Process::start(&world).await.stop().await;
    let now = Utc::now();
    for (second, metres, name) in [(1, 0.0, "in"), (3, 900.0, "out"), (2, 0.0, "late")] {
        let at = now + TimeDelta::seconds(second);
        world.fix_at(&person, at, 10.0 + metres * METRE, name).await;
    }
    let first = Process::start(&world).await;
    world.told(&place, &person, &["entered", "left"]).await;
    first.stop().await;
    let second = Process::start(&world).await;
    let at = now + TimeDelta::seconds(9);
    world.fix_at(&person, at, 10.0, "in again").await;
    world
        .told(&place, &person, &["entered", "left", "entered"])
        .await;
    second.stop().await;
}

#[tokio::test]
async fn a_person_who_hides_or_left_crosses_no_places() {
    let world = World::new().await;
    let access = world.access().await;
    let process = Process::start(&world).await;
    let (anna, ben) = (
        world.person(&access, "Anna").await,
        world.person(&access, "Ben").await,
    );
    let circle = world.circle(&[&anna, &ben]).await;
    let place = world.place(&circle, &anna, 10.0).await;
    world.pause(&anna, Utc::now() + TimeDelta::hours(1)).await;
    world.fix(&anna, 10.0, "hidden").await;
    world.leave(&circle, &ben).await;
    world.fix(&ben, 10.0, "gone").await;
    world.join(&circle, &ben).await;
    world.fix(&ben, 11.0, "elsewhere").await;
    world.fix(&ben, 10.0, "back").await;
    world.told(&place, &ben, &["entered"]).await;
    world.unpause(&anna).await;
    world.fix(&anna, 11.0, "elsewhere").await;
    world.fix(&anna, 10.0, "shown").await;
    world.told(&place, &anna, &["entered"]).await;
    process.stop().await;
}

#[tokio::test]
async fn crossings_reported_before_leaving_and_rejoining_are_not_reported_again() {
    let world = World::new().await;
    let (ben, circle, place) = told_and_gone(&world).await;
    world.leave(&circle, &ben).await;
    world.join(&circle, &ben).await;
    // A process that takes over may start at an older position.
    let name = CheckpointBucket::Runner.name();
    let noted = world.log.bucket(name, None).await.unwrap();
    let keys: Vec<String> = noted.keys().await.unwrap().try_collect().await.unwrap();
    assert!(keys.iter().any(|key| key.starts_with("geofence.")));
    for key in keys {
        noted.purge(key).await.unwrap();
    }
    let process = Process::start(&world).await;
    world.fix(&ben, 10.0, "in, and back").await;
    world.told(&place, &ben, &["entered", "entered"]).await;
    process.stop().await;
}

#[tokio::test]
async fn a_position_from_before_somebody_left_and_came_back_shows_no_crossing() {
    let world = World::new().await;
    let (ben, circle, place) = told_and_gone(&world).await;
    world.fix(&ben, 11.0, "out, and nobody looks").await;
    world.leave(&circle, &ben).await;
    world.join(&circle, &ben).await;
    let process = Process::start(&world).await;
    world.fix(&ben, 10.0, "in, and back").await;
    world.told(&place, &ben, &["entered", "entered"]).await;
    process.stop().await;
}

/// Every crossing takes longer than the positions of others wait for it.
#[tokio::test]
async fn what_takes_long_to_record_is_set_aside_and_recorded_in_its_order() {
    let prefix = unused_prefix();
    let world = World::at(&prefix).await;
    let far_away = World::far_away_at(&prefix, Duration::from_millis(120)).await;
    let access = world.access().await;
    let anna = world.person(&access, "Anna").await;
    let ben = world.person(&access, "Ben").await;
    let family = world.circle(&[&anna, &ben]).await;
    let home = world.place(&family, &anna, 10.0).await;
    let school = world.org_circle(&[&anna]).await;
    let school = world.place(&school, &anna, 10.0).await;
    let process = Process::with(&far_away, LEASE * 5).await;
    for metres in [500.0, 20.0, 105.0, 400.0, 10.0] {
        for person in [&anna, &ben] {
            world.fix(person, 10.0 + metres * METRE, "on the way").await;
        }
    }
    for (place, person) in [(&home, &anna), (&home, &ben), (&school, &anna)] {
        let all = ["entered", "left", "entered"];
        world.told(place, person, &all).await;
    }
    process.stop().await;
}
