//! Logs of their own for tests, and events to put into them.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use chrono::{DateTime, SubsecRound as _, Utc};
use event_log::{Commit, EventLog, Expected, Item, Keyring, LogSettings, Position, Tail, Write};
use local_servers::{LocalNats, NatsOptions, TemporaryHome};
use schemas::{
    AggregateType, Context, Event, EventId, Log, NewEvent, OrgId, Recorded, StreamId, run,
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

pub(crate) const STREAMS: [&str; 4] = ["EVENTS", "LOCATIONS", "DELIVERIES", "KV_KEYS"];

/// A log under a prefix of its own on the server that `NATS_URL` names; removed when dropped.
pub(crate) struct TestLog {
    log: EventLog,
    pub(crate) settings: LogSettings,
}

impl Deref for TestLog {
    type Target = EventLog;

    fn deref(&self) -> &EventLog {
        &self.log
    }
}

pub(crate) fn settings() -> LogSettings {
    let url = std::env::var("NATS_URL").expect("NATS_URL names a server for the tests");
    LogSettings {
        log_prefix: format!("t{}-", Uuid::new_v4().simple()),
        // A busy machine must not fail tests of other things.
        log_timeout_ms: 5_000,
        ..LogSettings::at(url)
    }
}

/// For what must fail in the end.
pub(crate) fn hasty() -> LogSettings {
    LogSettings {
        log_timeout_ms: 1_500,
        ..settings()
    }
}

pub(crate) fn keyring() -> Keyring {
    Keyring::from_master(&[7; 32])
}

impl TestLog {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: LogSettings) -> Self {
        let log = EventLog::connect(&settings, keyring()).await.unwrap();
        Self { log, settings }
    }

    /// The log as another process would see it.
    pub(crate) async fn another(&self) -> EventLog {
        EventLog::connect(&self.settings, keyring()).await.unwrap()
    }

    pub(crate) async fn raw(&self) -> jetstream::Context {
        raw(self.settings.nats_url()).await
    }

    pub(crate) async fn raw_stream(&self, log: Log) -> jetstream::stream::Stream {
        let name = stream_name(&self.settings, log);
        self.raw().await.get_stream(name).await.unwrap()
    }
}

impl Drop for TestLog {
    fn drop(&mut self) {
        let settings = self.settings.clone();
        let remove = move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(remove_streams(&settings));
        };
        // A drop cannot wait for anything itself. What is left over does no harm.
        let _ = std::thread::spawn(remove).join();
    }
}

pub(crate) async fn remove_streams(settings: &LogSettings) {
    let raw = raw(settings.nats_url()).await;
    for name in STREAMS {
        let name = match name.strip_prefix("KV_") {
            Some(bucket) => format!("KV_{}{bucket}", settings.log_prefix),
            None => format!("{}{name}", settings.log_prefix),
        };
        let _ = raw.delete_stream(name).await;
    }
}

pub(crate) fn stream_name(settings: &LogSettings, log: Log) -> String {
    let name = match log {
        Log::Events => "EVENTS",
        Log::Locations => "LOCATIONS",
        Log::Deliveries => "DELIVERIES",
    };
    format!("{}{name}", settings.log_prefix)
}

/// The server without the event log.
pub(crate) async fn raw(url: &str) -> jetstream::Context {
    let address: async_nats::ServerAddr = url.parse().unwrap();
    let (user, password) = (address.username().unwrap(), address.password().unwrap());
    let (user, password) = (user.to_owned(), password.to_owned());
    let options = async_nats::ConnectOptions::with_user_and_password(user, password);
    jetstream::new(options.connect(address).await.unwrap())
}

/// A server of the test's own, which it may stop and kill, with a log on it.
pub(crate) struct OwnServer {
    pub(crate) log: EventLog,
    pub(crate) settings: LogSettings,
    pub(crate) nats: LocalNats,
    pub(crate) home: TemporaryHome,
}

impl OwnServer {
    pub(crate) async fn start() -> Self {
        let home = TemporaryHome::new().unwrap();
        let options = NatsOptions::default();
        let nats = LocalNats::start(home.path(), options).await.unwrap();
        let settings = LogSettings::at(nats.url());
        let log = EventLog::connect(&settings, keyring()).await.unwrap();
        Self {
            log,
            settings,
            nats,
            home,
        }
    }

    /// A crash and what follows it.
    pub(crate) async fn crash(&mut self) {
        self.nats.kill();
        self.nats.restart().await.unwrap();
    }
}

pub(crate) fn org() -> OrgId {
    OrgId::from("o1")
}

pub(crate) fn stream(kind: AggregateType, id: &str) -> StreamId {
    StreamId::new(&org(), kind, id)
}

pub(crate) fn run_stream(id: &str) -> StreamId {
    stream(AggregateType::Run, id)
}

pub(crate) fn fresh_run() -> StreamId {
    run_stream(&Uuid::new_v4().to_string())
}

/// The time as the log keeps it.
#[expect(clippy::disallowed_methods, reason = "these tests live by it")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

pub(crate) fn new_event(event: Event) -> NewEvent {
    NewEvent {
        id: EventId(Uuid::now_v7()),
        time: now(),
        event,
        context: Context::default(),
        receipt: None,
    }
}

/// Some event; its data says nothing but how long it is.
pub(crate) fn event() -> NewEvent {
    new_event(Event::RunStarted(run::Started {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    }))
}

pub(crate) fn event_of(bytes: usize) -> NewEvent {
    new_event(Event::RunFailed(run::Failed {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        error: "x".repeat(bytes),
    }))
}

pub(crate) fn events(count: usize) -> Vec<NewEvent> {
    (0..count).map(|_| event()).collect()
}

pub(crate) fn write(stream: &StreamId, expected: Expected, count: usize) -> Write {
    Write {
        stream: stream.clone(),
        expected,
        events: events(count),
    }
}

/// The first events of an aggregate that nobody else knows.
pub(crate) fn fresh(count: usize) -> Commit {
    write(&fresh_run(), Expected::Empty, count).into()
}

pub(crate) fn ids(commit: &Commit) -> Vec<EventId> {
    let events = commit.writes.iter().flat_map(|write| &write.events);
    events.map(|event| event.id).collect()
}

pub(crate) fn ids_of(events: &[Recorded]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// Everything currently in the log, in order, each event once.
pub(crate) async fn everything(log: &EventLog, which: Log) -> Vec<Recorded> {
    let mut tail = connected_tail(log, which).await;
    let all = until_caught_up(&mut tail).await;
    let unique: HashSet<EventId> = all.iter().map(|event| event.id).collect();
    assert_eq!(unique.len(), all.len(), "an event stands twice in the log");
    all
}

/// A tail from the beginning. After a crash, the connection of followers can be back later than
/// that of appends.
async fn connected_tail(log: &EventLog, which: Log) -> Tail {
    let connecting = async {
        loop {
            match log.tail(which, 0, &[]).await {
                Err(error) if error.passes() => sleep(Duration::from_millis(10)).await,
                tail => return tail.unwrap(),
            }
        }
    };
    timeout(Duration::from_secs(20), connecting).await.unwrap()
}

pub(crate) async fn until_caught_up(tail: &mut Tail) -> Vec<Recorded> {
    let mut all = Vec::new();
    while !tail.caught_up() {
        all.extend(recorded(tail.next(500).await.unwrap().items));
    }
    all
}

pub(crate) fn recorded(items: Vec<Item>) -> Vec<Recorded> {
    let event = |item| match item {
        Item::Event(event) => Arc::unwrap_or_clone(event),
        other @ Item::Undecodable { .. } => panic!("{other:?}"),
    };
    items.into_iter().map(event).collect()
}

/// Asserts that a commit's events are consecutive, the last at its position.
pub(crate) fn assert_stored_at(all: &[Recorded], position: Position, commit: &[EventId]) {
    let last = usize::try_from(position.sequence()).unwrap();
    let place = last.checked_sub(commit.len()).unwrap();
    assert_eq!(ids_of(&all[place..last]), commit, "at {position}");
    assert_eq!(all[last - 1].sequence, position.sequence());
}

/// Whether any file below `folder` holds these bytes.
pub(crate) fn holds(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        // A file may disappear during the search.
        let content = std::fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}

/// A log as seen by a process with this delay to it, each way.
pub(crate) async fn far_away(settings: &LogSettings, way: Duration) -> EventLog {
    let settings = LogSettings {
        nats_url: Some(local_servers::far_away(settings.nats_url(), way).unwrap()),
        ..settings.clone()
    };
    EventLog::connect(&settings, keyring()).await.unwrap()
}
