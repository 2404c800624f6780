//! Circles, accounts and positions: SQL and the fold agree on who sees whom, and a forgotten person
//! leaves nothing.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::circles::{Circles, Viewer, create};
use event_log::{Binding, EventLog, Expected, Item, Keyring, Owner, Write};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use schemas::account::{Forgotten, Registered, SharingPaused, SharingResumed};
use schemas::circle::{CircleOwner, MemberJoined, MemberLeft, PlaceAdded};
use schemas::location::Updated;
use schemas::sos::Triggered;
use schemas::{
    AccountId, AggregateType, CircleId, Event, Log, OrgId, PlaceId, SYSTEM_ORG, Sealed, SosId,
    StreamId,
};
use serde_json::json;

use crate::support::{World, eventually, log_settings, new_event, now};

const ADA: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);

/// Appends events at times of the test's choice.
struct Writer<'w> {
    world: &'w World,
    seen: HashMap<StreamId, u64>,
}

impl<'w> Writer<'w> {
    fn new(world: &'w World) -> Self {
        let seen = HashMap::new();
        Self { world, seen }
    }

    async fn append(&mut self, stream: StreamId, at: DateTime<Utc>, event: Event) -> u64 {
        let mut event = new_event(event);
        event.time = at;
        let write = Write {
            stream: stream.clone(),
            expected: Expected::after(self.seen.get(&stream).copied()),
            events: vec![event],
        };
        let position = self.world.log.commit(write.into()).await.unwrap();
        self.seen.insert(stream, position.sequence());
        position.sequence()
    }
}

pub(crate) fn nobodys(aggregate: AggregateType, id: &dyn std::fmt::Display) -> StreamId {
    StreamId::new(&OrgId::from(SYSTEM_ORG), aggregate, id.to_string())
}

async fn seal(log: &EventLog, binding: Binding, text: &str) -> Sealed {
    log.vault().seal(&binding, text).await.unwrap()
}

pub(crate) async fn registered(log: &EventLog, account: AccountId, name: &str) -> Event {
    Event::AccountRegistered(Registered {
        account_id: account,
        name: seal(log, Binding::Name(account), name).await,
        email: seal(log, Binding::Email(account), "a@b.c").await,
        password_hash: seal(log, Binding::Password(account), "hash").await,
    })
}

async fn fix(log: &EventLog, account: AccountId, recorded_at: DateTime<Utc>, lat: f64) -> Event {
    let personal = json!({"lat": lat, "lng": 2.0, "accuracy": 1.5, "speed": null,
                          "place_name": "Café", "battery": 50});
    let position = Binding::Position(account, recorded_at);
    Event::LocationUpdated(Updated {
        user_id: account,
        recorded_at,
        sealed: seal(log, position, &personal.to_string()).await,
    })
}

async fn call_for_help(log: &EventLog, account: AccountId, call: &str) -> Event {
    let personal = json!({"lat": 1.0, "lng": 2.0, "message": "Help"}).to_string();
    let binding = Binding::CallForHelp(account, SosId::from(call));
    Event::SosTriggered(Triggered {
        sos_id: SosId::from(call),
        user_id: account,
        audience: vec![BOB],
        late: false,
        recorded_at: now(),
        sealed: seal(log, binding, &personal).await,
    })
}

/// The first events of a person's circle.
async fn own_circle(log: &EventLog, account: AccountId, circle: &str) -> Vec<Event> {
    let owner = CircleOwner::Account(account);
    let named = Binding::CircleName(owner.clone(), CircleId::from(circle));
    let name = seal(log, named, "Family").await;
    create(CircleId::from(circle), owner, name)
}

fn minute(start: DateTime<Utc>, minutes: i64) -> DateTime<Utc> {
    start + TimeDelta::minutes(minutes)
}

fn circle_id(circle: u64) -> CircleId {
    CircleId::from(circle.to_string())
}

fn moves(start: DateTime<Utc>) -> impl Strategy<Value = Vec<Event>> {
    let account = (1..5_u64).prop_map(AccountId);
    let circle = (0..3_u64).prop_map(circle_id);
    let event = prop_oneof![
        8 => (circle.clone(), account.clone()).prop_map(|(circle_id, user_id)| {
            Event::CircleMemberJoined(MemberJoined { circle_id, user_id })
        }),
        4 => (circle, account.clone()).prop_map(|(circle_id, user_id)| {
            Event::CircleMemberLeft(MemberLeft { circle_id, user_id })
        }),
        3 => (account.clone(), 0..80_i64).prop_map(move |(account_id, until)| {
            let until = minute(start, until);
            Event::AccountSharingPaused(SharingPaused { account_id, until })
        }),
        2 => account.prop_map(|account_id| {
            Event::AccountSharingResumed(SharingResumed { account_id })
        }),
    ];
    prop::collection::vec(event, 60)
}

fn stream_of(event: &Event) -> StreamId {
    match event {
        Event::CircleMemberJoined(joined) => nobodys(AggregateType::Circle, &joined.circle_id),
        Event::CircleMemberLeft(left) => nobodys(AggregateType::Circle, &left.circle_id),
        Event::AccountSharingPaused(paused) => nobodys(AggregateType::Account, &paused.account_id),
        Event::AccountSharingResumed(resumed) => {
            nobodys(AggregateType::Account, &resumed.account_id)
        }
        Event::AccountForgotten(forgotten) => {
            nobodys(AggregateType::Account, &forgotten.account_id)
        }
        _ => unreachable!("not one of these"),
    }
}

/// Whom SQL shows to whom, for every pair at every minute.
async fn seen_in_sql(
    world: &World,
    start: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<(i64, i64, i64)> {
    let seen: Vec<(i64, i64, i64)> = sqlx::query_as(
        "SELECT viewer, subject, at
         FROM generate_series(1::bigint, 4) AS viewer, generate_series(1::bigint, 4) AS subject,
              generate_series(0::bigint, 79) AS at
         WHERE viewer <> subject
           AND visible_times(viewer, subject, $2) @> ($1 + make_interval(mins => at::int))
         ORDER BY 1, 2, 3",
    )
    .bind(start)
    .bind(now)
    .fetch_all(&world.pool)
    .await
    .unwrap();
    seen
}

async fn seen_in_fold(
    world: &World,
    start: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<(i64, i64, i64)> {
    let kinds = [AggregateType::Circle, AggregateType::Account];
    let mut tail = world.log.tail(Log::Events, 0, &kinds).await.unwrap();
    let mut circles = Circles::default();
    while !tail.caught_up() {
        for item in tail.next(1_000).await.unwrap().items {
            if let Item::Event(event) = item {
                circles.apply(&event);
            }
        }
    }
    let mut seen = Vec::new();
    for viewer in 1..5_u64 {
        for subject in (1..5_u64).filter(|subject| *subject != viewer) {
            for at in 0..80 {
                let (fix, who) = (minute(start, at), Viewer::Account(AccountId(viewer)));
                if circles.may_see(&who, AccountId(subject), fix, now) {
                    seen.push((viewer.cast_signed(), subject.cast_signed(), at));
                }
            }
        }
    }
    seen
}

#[tokio::test]
async fn sql_and_fold_agree_on_who_sees_whom() {
    let world = World::new().await;
    let mut writer = Writer::new(&world);
    let start = now() - TimeDelta::minutes(200);
    for circle in 0..3 {
        let owner = CircleOwner::Account(ADA);
        let named = Binding::CircleName(owner.clone(), circle_id(circle));
        let name = seal(&world.log, named, "Family").await;
        for event in create(circle_id(circle), owner, name) {
            let stream = nobodys(AggregateType::Circle, &circle);
            writer.append(stream, start, event).await;
        }
    }
    let moves = moves(start)
        .new_tree(&mut TestRunner::default())
        .unwrap()
        .current();
    let (mut last, mut projector) = (0, None);
    for (nth, event) in (1_i64..).zip(&moves) {
        // The first half is delivered in one batch, the second in many.
        if nth == 30 {
            projector = Some(world.start());
            world.caught_up(Log::Events, last).await;
        }
        let stream = stream_of(event);
        last = writer
            .append(stream, minute(start, nth), event.clone())
            .await;
    }
    world.caught_up(Log::Events, last).await;
    for now in [minute(start, 61), minute(start, 75), minute(start, 100)] {
        let in_sql = seen_in_sql(&world, start, now).await;
        let in_fold = seen_in_fold(&world, start, now).await;
        assert_eq!(in_sql, in_fold, "{moves:?}");
    }
    projector.unwrap().stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_forgotten_person_leaves_no_row_and_comes_back_by_no_late_event() {
    let world = World::new().await;
    let projector = world.start();
    let mut writer = Writer::new(&world);
    let log = &world.log;
    let mut last = 0;
    for (account, name) in [(ADA, "Ada"), (BOB, "Bob")] {
        let event = registered(log, account, name).await;
        let stream = nobodys(AggregateType::Account, &account);
        last = writer.append(stream, now(), event).await;
    }
    let circle = nobodys(AggregateType::Circle, &"c");
    for event in own_circle(log, ADA, "c").await {
        writer.append(circle.clone(), now(), event).await;
    }
    let place = json!({"name": "Home", "lat": 1, "lng": 2, "radius_m": 50}).to_string();
    let watched = Binding::WatchedPlace(ADA, PlaceId::from("p"));
    let place = Event::CirclePlaceAdded(PlaceAdded {
        circle_id: CircleId::from("c"),
        place_id: PlaceId::from("p"),
        by: ADA,
        place: seal(log, watched, &place).await,
    });
    last = last.max(writer.append(circle.clone(), now(), place).await);
    let event = call_for_help(log, ADA, "s").await;
    let call = nobodys(AggregateType::Sos, &"s");
    last = last.max(writer.append(call, now(), event).await);
    let late_call = call_for_help(log, ADA, "late").await;
    let late_circle = own_circle(log, ADA, "late").await;
    let track = nobodys(AggregateType::Track, &ADA);
    let event = fix(log, ADA, now(), 1.0).await;
    let late = fix(log, ADA, now() - TimeDelta::hours(1), 2.0).await;
    let at = writer.append(track.clone(), now(), event).await;
    world.caught_up(Log::Events, last).await;
    world.caught_up(Log::Locations, at).await;
    for table in ROWS {
        assert_eq!(world.count(table).await, 1, "{table}");
    }

    // Another process forgets her; this one still holds the key.
    let keyring = Keyring::load(world.home.path()).unwrap();
    let other = EventLog::connect(&log_settings(&world.prefix), keyring)
        .await
        .unwrap();
    other.vault().forget(&Owner::Account(ADA)).await.unwrap();
    let event = Event::AccountForgotten(Forgotten { account_id: ADA });
    let stream = nobodys(AggregateType::Account, &ADA);
    last = writer.append(stream, now(), event).await;
    world.caught_up(Log::Events, last).await;
    let at = writer.append(track, now(), late).await;
    let call = nobodys(AggregateType::Sos, &"late");
    writer.append(call, now(), late_call).await;
    for event in late_circle {
        let circle = nobodys(AggregateType::Circle, &"late");
        last = writer.append(circle, now(), event).await;
    }
    world.caught_up(Log::Events, last).await;
    world.caught_up(Log::Locations, at).await;
    for table in ROWS {
        assert_eq!(world.count(table).await, 0, "{table}");
    }
    let circles = "SELECT count(*) FROM circles WHERE name IS NULL";
    assert_eq!(world.count(circles).await, 2);
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM dead_letters").await, 0);
    projector.stop().await;
    world.end().await;
}

/// Ada's own rows.
const ROWS: &[&str] = &[
    "SELECT count(*) FROM accounts WHERE name = 'Ada'",
    "SELECT count(*) FROM circle_members",
    "SELECT count(*) FROM circle_places",
    "SELECT count(*) FROM positions",
    "SELECT count(*) FROM sos_calls",
];

#[tokio::test]
async fn a_position_lives_as_long_as_its_event() {
    let world = World::new().await;
    let mut writer = Writer::new(&world);
    let track = nobodys(AggregateType::Track, &ADA);
    let (old, new) = (now() - TimeDelta::days(91), now() - TimeDelta::days(89));
    let event = fix(&world.log, ADA, old, 1.0).await;
    writer.append(track.clone(), old, event).await;
    // Recorded long ago, received lately.
    let event = fix(&world.log, ADA, old - TimeDelta::days(1), 1.0).await;
    let last = writer.append(track, new, event).await;
    let projector = world.start();
    world.caught_up(Log::Locations, last).await;
    projector.stop().await;
    let projector = world.start();
    let positions = "SELECT count(*) FROM positions";
    eventually("the old position is swept", async || {
        world.count(positions).await == 1
    })
    .await;
    projector.stop().await;
    world.end().await;
}
