//! A log of the test's own on the server in `NATS_URL`, with workflows and runs in it.

mod runs;

use std::env;
use std::time::Duration;

use domain::record;
use event_log::{Binding, Commit, EventLog, Expected, Keyring, LogSettings, Write};
use schemas::workflow::Saved;
use schemas::{
    AggregateType, Context, Event, EventId, NewEvent, OrgId, StreamId, Traceparent, WorkflowId,
    secret,
};
use serde_json::Value;
use uuid::Uuid;
use workflow_runner::runs::RunSettings;

pub(crate) use self::runs::is_end;
pub(crate) use crate::definitions::{http, notify, trigger, workflow};
pub(crate) use crate::runner::Runner;
use crate::server::remove_streams;

/// Far longer than anything takes; only a failing test waits for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between two polls: the code that is waited for needs the processors more.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct World {
    pub(crate) log: EventLog,
    pub(crate) org: OrgId,
    settings: LogSettings,
}

impl World {
    pub(crate) async fn new() -> Self {
        let url = env::var("NATS_URL").expect("NATS_URL names a server for tests");
        Self::at(&url).await
    }

    /// On a server of the test's own.
    pub(crate) async fn at(url: &str) -> Self {
        if let Ok(log) = env::var("RUNS_LOG") {
            let log_format = service::settings::LogFormat::Text;
            let home = ".".into();
            let common = service::settings::CommonSettings {
                home,
                log,
                log_format,
            };
            let _ = service::telemetry::init(&common);
        }
        let unique = Uuid::new_v4().simple().to_string();
        let settings = LogSettings {
            log_prefix: format!("runs{}", &unique[..12]),
            // A busy machine must not fail tests of other behaviour.
            log_timeout_ms: 5_000,
            ..LogSettings::at(url)
        };
        Self {
            log: connect(&settings).await,
            org: OrgId::from(Uuid::new_v4()),
            settings,
        }
    }

    /// The same log, for another organization.
    pub(crate) fn beside(&self, org: &OrgId) -> Self {
        Self {
            log: self.log.clone(),
            org: org.clone(),
            settings: self.settings.clone(),
        }
    }

    /// A connection of its own, as another process would have.
    pub(crate) async fn another_log(&self) -> EventLog {
        connect(&self.settings).await
    }

    /// The same log, declared as kept by three servers, at another address.
    pub(crate) async fn log_of_three(&self, url: &str) -> EventLog {
        let settings = LogSettings {
            nats_url: Some(url.to_owned()),
            log_replicas: 3,
            ..self.settings.clone()
        };
        connect(&settings).await
    }

    /// Saves a version of a workflow.
    pub(crate) async fn save(&self, id: &str, definition: Value) {
        let workflow_id = WorkflowId::from(id);
        let definition = domain::workflow::parse(&workflow_id, definition).unwrap();
        let stream = StreamId::new(&self.org, AggregateType::Workflow, id);
        let last = self.log.last(&stream).await.unwrap();
        let version = match last.as_ref().map(|last| &last.event) {
            Some(Event::WorkflowSaved(saved)) => saved.version + 1,
            _ => 1,
        };
        let saved = Event::WorkflowSaved(Saved {
            workflow_id,
            version,
            definition,
        });
        let seen = last.map(|last| last.sequence);
        self.append(&stream, seen, saved).await;
    }

    pub(crate) async fn set_secret(&self, name: &str, value: &str) {
        self.set_secret_for(name, value, &[]).await;
    }

    /// A secret that may go to some hosts only.
    pub(crate) async fn set_secret_for(&self, name: &str, value: &str, hosts: &[&str]) {
        let binding = Binding::Secret(self.org.clone(), name.to_owned());
        let set = Event::SecretSet(secret::Set {
            name: name.to_owned(),
            value: self.log.vault().seal(&binding, value).await.unwrap(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
        });
        let stream = StreamId::new(&self.org, AggregateType::Secret, name);
        self.append(&stream, None, set).await;
    }

    pub(crate) async fn append(&self, stream: &StreamId, seen: Option<u64>, event: Event) -> u64 {
        let commit = commit(stream, seen, event);
        self.log.commit(commit).await.unwrap().sequence()
    }

    /// Appends the first event of an aggregate with the given time.
    pub(crate) async fn append_at(
        &self,
        stream: &StreamId,
        event: Event,
        at: chrono::DateTime<chrono::Utc>,
    ) {
        let mut commit = commit(stream, None, event);
        commit.writes[0].events[0].time = at;
        self.log.commit(commit).await.unwrap();
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.settings.nats_url()
    }

    /// Writes a lead like the API does; returns its sequence.
    pub(crate) async fn lead(&self, id: &str, score: i64) -> u64 {
        self.lead_after_hops(id, score, 0).await
    }

    /// The same as if `hops` runs triggered by events had led to it.
    pub(crate) async fn lead_after_hops(&self, id: &str, score: i64, hops: u8) -> u64 {
        let fields = serde_json::json!({ "name": "Ada", "score": score });
        let Value::Object(fields) = fields else {
            panic!("fields are an object");
        };
        let draft = record::parse_object(record::Kind::Leads, fields).unwrap();
        let stream = StreamId::new(&self.org, AggregateType::Lead, id);
        let last = self.log.last(&stream).await.unwrap();
        let standing = last.as_ref().map(|last| &last.event);
        let (_, event) = record::put(id.into(), draft, standing, chrono::Utc::now());
        let seen = last.as_ref().map(|last| last.sequence);
        let mut commit = commit(&stream, seen, event.unwrap());
        commit.writes[0].events[0].context.hops = hops;
        self.log.commit(commit).await.unwrap().sequence()
    }

    pub(crate) async fn runner(&self) -> Runner {
        self.runner_with(settings()).await
    }

    pub(crate) async fn runner_with(&self, settings: RunSettings) -> Runner {
        Runner::start(self.another_log().await, settings, true).await
    }
}

pub(crate) fn settings() -> RunSettings {
    RunSettings {
        lease: Duration::from_millis(900),
        checkpoint: Duration::from_millis(100),
        shutdown: Duration::from_secs(2),
        ..RunSettings::default()
    }
}

impl Drop for World {
    /// Removes the test's streams from the server. Drop is not async, and leftover streams do no
    /// harm.
    fn drop(&mut self) {
        let settings = self.settings.clone();
        let remove = move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build()?;
            let removed = remove_streams(&settings);
            let _ = runtime.block_on(async { tokio::time::timeout(TIMEOUT, removed).await });
            Ok::<(), std::io::Error>(())
        };
        let _ = std::thread::spawn(remove).join();
    }
}

async fn connect(settings: &LogSettings) -> EventLog {
    let keyring = Keyring::from_master(&[9; 32]);
    EventLog::connect(settings, keyring).await.unwrap()
}

fn commit(stream: &StreamId, seen: Option<u64>, event: Event) -> Commit {
    let id = Uuid::now_v7();
    let trace = Traceparent::from_parts(id.as_u128(), 7);
    let event = NewEvent {
        id: EventId(id),
        time: chrono::Utc::now(),
        event,
        context: Context {
            correlation_id: Some("request-1".to_owned()),
            causation_id: Some("request-1".to_owned()),
            traceparent: Some(trace),
            hops: 0,
            cause: None,
            actor: None,
        },
        receipt: None,
    };
    Commit::from(Write {
        stream: stream.clone(),
        expected: Expected::after(seen),
        events: vec![event],
    })
}
