//! Persons, circles and positions in a test's log.

use std::pin::pin;
use std::time::Duration;

use access::Access;
use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Binding, Owner, Position};
use futures::poll;
use schemas::circle::{CircleOwner, Created, MemberJoined, MemberLeft, PlaceAdded};
use schemas::{
    AccountId, AggregateType, CircleId, Event, OrgId, SYSTEM_ORG, SosId, StreamId, TokenId,
};
use schemas::{account, location, presence, sos};
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;
use workflow_runner::people::People;

use crate::support::{TIMEOUT, World, contact, write};

pub(crate) struct Person {
    pub(crate) id: AccountId,
    pub(crate) name: String,
    pub(crate) token: String,
    token_id: TokenId,
}

pub(crate) struct Circle {
    pub(crate) id: CircleId,
    org: OrgId,
}

impl World {
    /// Opens an account with a token.
    pub(crate) async fn person(&self, access: &Access, name: &str) -> Person {
        let id = AccountId(Uuid::new_v4().as_u64_pair().0 >> 12);
        let registered = account::Registered {
            account_id: id,
            name: self.seal(Binding::Name(id), name).await,
            email: self.seal(Binding::Email(id), "somebody@example.org").await,
            password_hash: self.seal(Binding::Password(id), "hash").await,
        };
        self.tell(&account_of(id), Event::AccountRegistered(registered))
            .await;
        let token_id = TokenId::from(Uuid::new_v4());
        Person {
            id,
            name: name.to_owned(),
            token: access.make_token(id, &token_id, 0).access_token,
            token_id,
        }
    }

    async fn seal(&self, binding: Binding, text: &str) -> schemas::Sealed {
        self.log.vault().seal(&binding, text).await.unwrap()
    }

    /// Appends after the aggregate's last event.
    pub(crate) async fn tell(&self, stream: &StreamId, event: Event) -> Position {
        let last = self.log.last(stream).await.unwrap();
        let seen = last.map_or(0, |last| last.sequence);
        self.append(stream, seen, event).await
    }

    pub(crate) async fn sign_out(&self, person: &Person) -> Position {
        let signed_out = account::SignedOut {
            account_id: person.id,
            token_id: person.token_id.clone(),
            expires_at: Utc::now() + TimeDelta::hours(1),
        };
        self.tell(&account_of(person.id), Event::AccountSignedOut(signed_out))
            .await
    }

    pub(crate) async fn pause(&self, person: &Person, until: DateTime<Utc>) {
        let account_id = person.id;
        let paused = account::SharingPaused { account_id, until };
        self.tell(&account_of(account_id), Event::AccountSharingPaused(paused))
            .await;
    }

    pub(crate) async fn unpause(&self, person: &Person) {
        let account_id = person.id;
        let resumed = account::SharingResumed { account_id };
        self.tell(
            &account_of(account_id),
            Event::AccountSharingResumed(resumed),
        )
        .await;
    }

    pub(crate) async fn forget(&self, person: &Person) {
        let account_id = person.id;
        let owner = Owner::Account(account_id);
        self.log.vault().forget(&owner).await.unwrap();
        let forgotten = account::Forgotten { account_id };
        self.tell(&account_of(account_id), Event::AccountForgotten(forgotten))
            .await;
    }

    /// A person's circle with these members, the first of whom created it.
    pub(crate) async fn circle(&self, members: &[&Person]) -> Circle {
        let owner = CircleOwner::Account(members[0].id);
        let org = OrgId::from(SYSTEM_ORG);
        self.circle_of(owner, org, members).await
    }

    /// A circle of this organization.
    pub(crate) async fn org_circle(&self, members: &[&Person]) -> Circle {
        let owner = CircleOwner::Organization(self.org.clone());
        self.circle_of(owner, self.org.clone(), members).await
    }

    async fn circle_of(&self, owner: CircleOwner, org: OrgId, members: &[&Person]) -> Circle {
        let circle = Circle {
            id: CircleId::from(Uuid::new_v4()),
            org,
        };
        let name = schemas::Sealed::from_ciphertext("v1.".to_owned());
        let created = Created {
            circle_id: circle.id.clone(),
            owner,
            name,
        };
        self.tell(&circle.stream(), Event::CircleCreated(created))
            .await;
        for member in members {
            self.join(&circle, member).await;
        }
        circle
    }

    pub(crate) async fn join(&self, circle: &Circle, person: &Person) {
        let joined = MemberJoined {
            circle_id: circle.id.clone(),
            user_id: person.id,
        };
        self.tell(&circle.stream(), Event::CircleMemberJoined(joined))
            .await;
    }

    pub(crate) async fn leave(&self, circle: &Circle, person: &Person) {
        let left = MemberLeft {
            circle_id: circle.id.clone(),
            user_id: person.id,
        };
        self.tell(&circle.stream(), Event::CircleMemberLeft(left))
            .await;
    }

    /// Adds a place of 100 m around this latitude to a circle.
    pub(crate) async fn place(&self, circle: &Circle, by: &Person, lat: f64) -> StreamOf {
        let place_id = schemas::PlaceId::from(Uuid::new_v4());
        let place = json!({"name": "School", "lat": lat, "lng": 13.4, "radius_m": 100.0});
        let watched = Binding::WatchedPlace(by.id, place_id.clone());
        let added = PlaceAdded {
            circle_id: circle.id.clone(),
            place_id: place_id.clone(),
            by: by.id,
            place: self.seal(watched, &place.to_string()).await,
        };
        self.tell(&circle.stream(), Event::CirclePlaceAdded(added))
            .await;
        StreamOf {
            org: circle.org.clone(),
            place_id,
        }
    }

    /// A fix at the current time.
    pub(crate) async fn fix(&self, person: &Person, lat: f64, place_name: &str) -> Position {
        self.fix_at(person, Utc::now(), lat, place_name).await
    }

    pub(crate) async fn fix_at(
        &self,
        person: &Person,
        recorded_at: DateTime<Utc>,
        lat: f64,
        place_name: &str,
    ) -> Position {
        let personal = json!({
            "lat": lat, "lng": 13.4, "accuracy": 5.0, "speed": null,
            "place_name": place_name, "battery": null,
        });
        let position = Binding::Position(person.id, recorded_at);
        let updated = location::Updated {
            user_id: person.id,
            recorded_at,
            sealed: self.seal(position, &personal.to_string()).await,
        };
        self.tell(&track_of(person.id), Event::LocationUpdated(updated))
            .await
    }

    /// A call for help, in the persons' part of the log.
    pub(crate) async fn sos(&self, person: &Person, audience: &[&Person]) -> Position {
        let (org, id) = (OrgId::from(SYSTEM_ORG), SosId::from(Uuid::new_v4()));
        self.sos_in(&org, &id, person, audience).await
    }

    /// A call for help, in this part of the log.
    pub(crate) async fn sos_in(
        &self,
        org: &OrgId,
        id: &SosId,
        person: &Person,
        audience: &[&Person],
    ) -> Position {
        let personal = json!({"lat": 1.5, "lng": 2.5, "message": "help"});
        let stream = StreamId::new(org, AggregateType::Sos, id.as_str());
        let sos_id = id.clone();
        let call = Binding::CallForHelp(person.id, sos_id.clone());
        let triggered = sos::Triggered {
            sos_id,
            user_id: person.id,
            audience: audience.iter().map(|person| person.id).collect(),
            late: false,
            recorded_at: Utc::now(),
            sealed: self.seal(call, &personal.to_string()).await,
        };
        self.tell(&stream, Event::SosTriggered(triggered)).await
    }

    /// A crossing, as the runner writes it.
    pub(crate) async fn cross(&self, circle: &Circle, person: &Person) -> Position {
        let personal = json!({"name": "School"});
        let stream = StreamId::new(
            &circle.org,
            AggregateType::Presence,
            format!("p1-{}", person.id),
        );
        let recorded_at = Utc::now();
        let binding = Binding::Crossing {
            account: person.id,
            circle: circle.id.clone(),
            place: "p1".into(),
            at: recorded_at,
        };
        let crossing = presence::Crossing {
            user_id: person.id,
            circle_id: circle.id.clone(),
            place_id: "p1".into(),
            recorded_at,
            sealed: self.seal(binding, &personal.to_string()).await,
        };
        self.tell(&stream, Event::PlaceEntered(crossing)).await
    }

    /// Many fixes of one person, each with a long place name.
    pub(crate) async fn walk(&self, person: &Person, steps: usize, padding: usize) -> Position {
        let place_name = "x".repeat(padding);
        let start = Utc::now();
        let mut last = None;
        let stream = track_of(person.id);
        for some in (0..steps).collect::<Vec<_>>().chunks(50) {
            let mut events = Vec::with_capacity(some.len());
            for step in some {
                let seconds = i64::try_from(*step).unwrap();
                let personal = json!({
                    "lat": 1.0, "lng": seconds, "accuracy": null, "speed": null,
                    "place_name": place_name, "battery": null,
                });
                let recorded_at = start + TimeDelta::milliseconds(seconds);
                let position = Binding::Position(person.id, recorded_at);
                events.push(Event::LocationUpdated(location::Updated {
                    user_id: person.id,
                    recorded_at,
                    sealed: self.seal(position, &personal.to_string()).await,
                }));
            }
            let before = self.log.last(&stream).await.unwrap();
            let seen = before.map_or(0, |last| last.sequence);
            let write = write(&stream, seen, events);
            last = Some(self.log.commit(write.into()).await.unwrap());
        }
        last.unwrap()
    }
}

/// The stream of a place's crossings.
pub(crate) struct StreamOf {
    org: OrgId,
    place_id: schemas::PlaceId,
}

impl StreamOf {
    pub(crate) fn person(&self, person: &Person) -> StreamId {
        let id = format!("{}-{}", self.place_id, person.id);
        StreamId::new(&self.org, AggregateType::Presence, id)
    }
}

impl Circle {
    fn stream(&self) -> StreamId {
        StreamId::new(&self.org, AggregateType::Circle, self.id.as_str())
    }
}

fn account_of(id: AccountId) -> StreamId {
    let org = OrgId::from(SYSTEM_ORG);
    StreamId::new(&org, AggregateType::Account, id.to_string())
}

fn track_of(id: AccountId) -> StreamId {
    let org = OrgId::from(SYSTEM_ORG);
    StreamId::new(&org, AggregateType::Track, id.to_string())
}

#[tokio::test]
async fn a_caller_that_stops_polling_keeps_nobody_waiting() {
    let world = World::far_away(Duration::from_millis(20)).await;
    let (people, tail) = People::start(&world.log).await.unwrap();
    let follower = people.clone();
    tokio::spawn(async move { follower.follow(tail).await });
    let mut first = pin!(people.settle());
    assert!(poll!(first.as_mut()).is_pending());
    timeout(TIMEOUT, people.settle()).await.unwrap();
    first.await;
}

#[tokio::test]
async fn what_was_erased_before_it_was_taken_is_not_waited_for() {
    let world = World::new().await;
    let (people, tail) = People::start(&world.log).await.unwrap();
    let gone = StreamId::new(&world.org, AggregateType::Contact, "gone");
    world.append(&gone, 0, contact("gone", 1)).await;
    world.log.erase(&gone).await.unwrap();
    let follower = people.clone();
    tokio::spawn(async move { follower.follow(tail).await });
    timeout(TIMEOUT, people.settle()).await.unwrap();
}
