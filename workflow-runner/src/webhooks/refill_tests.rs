use event_log::{Expected, Keyring, LogSettings, Write};
use schemas::webhook::{Created, Status, Updated};
use schemas::{Context, Event, EventId, NewEvent, OrgId, Sealed, run};
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
