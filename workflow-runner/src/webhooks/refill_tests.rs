use event_log::{Expected, Keyring, LogSettings, Write};
use schemas::circle::{self, CircleOwner, MemberJoined, MemberLeft};
use schemas::webhook::{Created, Status, Updated};
use schemas::{AccountId, CircleId, Context, Event, EventId, NewEvent, OrgId, Sealed, run};
use uuid::Uuid;

use super::super::directory::Directory;
use super::*;

const WEBHOOK: &str = "h1";

async fn log() -> EventLog {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: format!("refill-{}-", Uuid::new_v4().simple()),
        ..LogSettings::at(url)
    };
    let keyring = Keyring::from_master(&[7; 32]);
    EventLog::connect(&settings, keyring).await.unwrap()
}

/// Appends an event after the sequence `seen` of its aggregate (0: the first).
async fn append(log: &EventLog, stream: &StreamId, seen: u64, event: Event) -> u64 {
    let event = NewEvent {
        id: EventId(Uuid::new_v4()),
        time: DateTime::UNIX_EPOCH,
        event,
        context: Context::default(),
        receipt: None,
    };
    let write = Write {
        stream: stream.clone(),
        expected: Expected::after((seen > 0).then_some(seen)),
        events: vec![event],
    };
    let appended = log.commit(write.into()).await;
    appended.unwrap().sequence()
}

async fn start_run(log: &EventLog, org: &OrgId, id: &str) -> u64 {
    let started = Event::RunStarted(run::Started {
        run_id: id.into(),
        workflow_id: "w1".into(),
    });
    let stream = StreamId::new(org, AggregateType::Run, id);
    append(log, &stream, 0, started).await
}

/// Creates an endpoint that wants these events.
async fn create(log: &EventLog, stream: &StreamId, wanted: &str) -> u64 {
    let created = Event::WebhookCreated(Created {
        id: WEBHOOK.into(),
        url: "https://x.example/".to_owned(),
        events: vec![wanted.to_owned()],
        description: None,
        secret: Sealed::from_ciphertext(String::new()),
    });
    append(log, stream, 0, created).await
}

async fn change(log: &EventLog, stream: &StreamId, seen: u64, wanted: &str) -> u64 {
    let updated = Event::WebhookUpdated(Updated {
        id: WEBHOOK.into(),
        url: "https://x.example/".to_owned(),
        events: vec![wanted.to_owned()],
        description: None,
        status: Status::Enabled,
    });
    append(log, stream, seen, updated).await
}

/// The endpoint as its events up to a sequence leave it.
async fn endpoint(log: &EventLog, stream: &StreamId, through: u64) -> Arc<Endpoint> {
    let mut directory = Directory::default();
    let events = log.load(stream).await.unwrap();
    for recorded in events.iter().filter(|event| event.sequence <= through) {
        directory.apply(recorded);
    }
    directory.get(&WEBHOOK.into()).unwrap().clone()
}

#[tokio::test]
async fn a_refill_ends_where_the_endpoint_may_want_other_events() {
    let log = log().await;
    let org = OrgId::from("o1");
    let (people, tail) = People::start(&log).await.unwrap();
    let follower = people.clone();
    let following = tokio::spawn(async move { follower.follow(tail).await });
    let stream = StreamId::new(&org, AggregateType::Webhook, WEBHOOK);
    let created = create(&log, &stream, "run.*").await;
    let first = start_run(&log, &org, "r1").await;
    let contacts = change(&log, &stream, created, "contact.*").await;
    start_run(&log, &org, "r2").await;
    let runs = change(&log, &stream, contacts, "run.*").await;
    let last = start_run(&log, &org, "r3").await;
    let reader = Reader {
        log: log.clone(),
        people,
        feed: Feed::Events,
        now: DateTime::UNIX_EPOCH,
    };
    let after = |after| Gap {
        after,
        unsure_through: 0,
    };
    // The reader waited for its turn, and knows nothing of the last change.
    let known = endpoint(&log, &stream, contacts).await;
    let read_known = read(&reader, &known, after(created), contacts).await;
    let (found, payloads) = read_known.unwrap();
    assert_eq!((found.untried, payloads.len()), (vec![first], 1));
    assert_eq!((found.through, found.complete), (contacts, true));
    let known = endpoint(&log, &stream, runs).await;
    let read_rest = read(&reader, &known, after(contacts), last).await;
    let (found, _) = read_rest.unwrap();
    assert_eq!((found.untried, found.through), (vec![last], last));
    let nothing = read(&reader, &known, after(last), runs).await;
    let (found, _) = nothing.unwrap();
    assert_eq!((found.through, found.complete), (last, true));
    following.abort();
}

#[tokio::test]
async fn positions_are_read_only_for_an_organization_with_members() {
    let log = log().await;
    let (org, user_id) = (OrgId::from("o1"), AccountId(1));
    let (people, tail) = People::start(&log).await.unwrap();
    let follower = people.clone();
    let following = tokio::spawn(async move { follower.follow(tail).await });
    let fix = Event::LocationUpdated(schemas::location::Updated {
        user_id,
        recorded_at: DateTime::UNIX_EPOCH,
        sealed: Sealed::from_ciphertext(String::new()),
    });
    let fix = append(&log, &StreamId::of_track(user_id), 0, fix).await;
    let found = async || {
        let page = Feed::Locations.page(&log, &people, &org, 0, PAGE).await;
        let page = page.unwrap();
        assert!(page.complete);
        let events = page.events().map(|recorded| recorded.sequence);
        events.collect::<Vec<u64>>()
    };
    assert!(found().await.is_empty());

    let circle_id = CircleId::from("c1");
    let stream = StreamId::new(&org, AggregateType::Circle, circle_id.as_str());
    let created = Event::CircleCreated(circle::Created {
        circle_id: circle_id.clone(),
        owner: CircleOwner::Organization(org.clone()),
        name: Sealed::from_ciphertext(String::new()),
    });
    let created = append(&log, &stream, 0, created).await;
    assert!(found().await.is_empty());
    let joined = Event::CircleMemberJoined(MemberJoined {
        circle_id: circle_id.clone(),
        user_id,
    });
    let joined = append(&log, &stream, created, joined).await;
    assert_eq!(found().await, [fix]);
    let left = Event::CircleMemberLeft(MemberLeft { circle_id, user_id });
    append(&log, &stream, joined, left).await;
    people.settle().await;
    assert!(found().await.is_empty());
    following.abort();
}
