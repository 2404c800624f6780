//! Against the real server: every test has a log of its own.

use std::collections::BTreeSet;
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use chrono::DateTime;
use event_log::{Commit, EventLog, Expected, Keyring, LogSettings, Write};
use schemas::workflow::Saved;
use schemas::{AggregateType, Context, Event, EventId, NewEvent, StreamId, WorkflowId, run};
use serde_json::{Value, json};
use service::SystemClock;
use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::checkpoints::Kind;
use crate::leases::{Group, Work};
use crate::people::People;
use crate::runs::{OpenRuns, Renderer, TemplateSettings};

const LEAD: &str = "lead.created";
const YEARLY: &str = "0 0 1 1 *";
const LOOK: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(20);

async fn log() -> EventLog {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: format!("dispatcher-{}-", Uuid::new_v4().simple()),
        ..LogSettings::at(url)
    };
    let keyring = Keyring::from_master(&[7; 32]);
    EventLog::connect(&settings, keyring).await.unwrap()
}

async fn join(log: &EventLog) -> Group {
    let group = Group::join(log, RunSettings::default().lease).await;
    group.unwrap()
}

/// As it is once its process has started.
async fn dispatcher(log: &EventLog) -> Dispatcher {
    dispatcher_in(&join(log).await, log).await
}

async fn dispatcher_in(group: &Group, log: &EventLog) -> Dispatcher {
    let (people, _tail) = People::start(log).await.unwrap();
    let settings = RunSettings::default();
    let matcher = Matcher {
        renderer: Renderer::new(log.clone(), &TemplateSettings::default()),
        index: RwLock::default(),
        cause_counts: Mutex::default(),
        match_notices: Mutex::default(),
        budget: settings.caused_runs,
        open_runs: OpenRuns::at_most(1_000),
        log: log.clone(),
        people,
        clock: Arc::new(SystemClock),
    };
    let listed_to = read_workflows(&matcher, 0).await.unwrap();
    let checkpoints = Checkpoints::open(log, Kind::Triggers).await.unwrap();
    let following = Arc::new(AtomicBool::new(false));
    let (matcher, leases) = ((Arc::new(matcher), listed_to), group.leases(Work::Triggers));
    Dispatcher::new(matcher, leases, checkpoints, settings, following)
}

fn org() -> OrgId {
    OrgId::from("o")
}

fn ours() -> u16 {
    partition_of(org().as_str())
}

/// Another organization in the same partition, after the first in order.
fn neighbour() -> OrgId {
    let mut others = (0..).map(|nth| OrgId::from(format!("z{nth}")));
    let is_ours = |org: &OrgId| partition_of(org.as_str()) == ours();
    others.find(is_ours).unwrap()
}

/// Takes over the organization's partition, which others have matched up to `through`.
async fn take_over(dispatcher: &mut Dispatcher, through: u64) {
    let round = dispatcher
        .partitions
        .change(&BTreeSet::from([ours()]))
        .round;
    let checkpoint = TriggerCheckpoint::new(through, &[], Vec::new());
    let taken = Ok((round, vec![(ours(), checkpoint, Vec::new())]));
    dispatcher.take_over(taken).await.unwrap();
}

/// Waits until the organization's partition is certainly owned.
async fn until_owned(dispatcher: &Dispatcher) {
    let owned = async {
        while !dispatcher.leases.owns(ours()) {
            sleep(LOOK).await;
        }
    };
    timeout(TIMEOUT, owned).await.expect("the partition");
}

/// Saves a workflow that listens to leads; returns its sequence.
async fn save(log: &EventLog, id: &str) -> u64 {
    save_on(log, &org(), id, &json!({ "event": LEAD })).await
}

/// Saves a workflow with this trigger, long ago; returns its sequence.
async fn save_on(log: &EventLog, org: &OrgId, id: &str, on: &Value) -> u64 {
    let workflow_id = WorkflowId::from(id);
    let definition = json!({ "name": "N", "status": "ACTIVE",
        "steps": [{ "id": "start", "type": "TRIGGER", "on": on }] });
    let definition = domain::workflow::parse(&workflow_id, definition).unwrap();
    let saved = Event::WorkflowSaved(Saved {
        workflow_id,
        version: 1,
        definition,
    });
    let event = NewEvent {
        id: EventId(Uuid::new_v4()),
        time: DateTime::UNIX_EPOCH,
        event: saved,
        context: Context::default(),
        receipt: None,
    };
    let commit = Commit::from(Write {
        stream: StreamId::new(org, AggregateType::Workflow, id),
        expected: Expected::Empty,
        events: vec![event],
    });
    log.commit(commit).await.unwrap().sequence()
}

/// The sequences of the runs that were begun in an organization.
async fn begun(log: &EventLog, org: &OrgId) -> Vec<u64> {
    let page = log.page(Log::Events, org, Some(AggregateType::Run), 0, 1_000);
    let page = page.await.unwrap();
    page.events().map(|run| run.sequence).collect()
}

fn of_run(sequence: u64, event: Event) -> Arc<Recorded> {
    Arc::new(Recorded {
        sequence,
        stream: StreamId::new(&org(), AggregateType::Run, "r"),
        id: EventId(Uuid::from_u128(sequence.into())),
        time: DateTime::UNIX_EPOCH,
        event,
        context: Context::default(),
        receipt: None,
    })
}

fn awaited(sequence: u64, attempt: u32) -> Arc<Recorded> {
    let event = Event::RunEventAwaited(run::EventAwaited {
        run_id: "r".into(),
        workflow_id: "w".into(),
        step_id: "reply".into(),
        attempt,
        event: LEAD.to_owned(),
    });
    of_run(sequence, event)
}

fn failed(sequence: u64) -> Arc<Recorded> {
    let event = Event::RunFailed(run::Failed {
        run_id: "r".into(),
        workflow_id: "w".into(),
        error: "HTTP 500".to_owned(),
    });
    of_run(sequence, event)
}

fn waiting(dispatcher: &Dispatcher) -> Vec<u64> {
    dispatcher.matcher.read(|index| {
        let waits = index.waits.waiting(&org(), LEAD, (0, u64::MAX));
        waits.iter().map(|wait| wait.sequence).collect()
    })
}

fn listening(dispatcher: &Dispatcher) -> usize {
    dispatcher.matcher.read(|index| {
        let listeners = index.workflows.listeners(&org(), LEAD, u64::MAX);
        listeners.count()
    })
}

#[tokio::test]
async fn a_partition_gained_late_is_matched_with_what_was_saved_meanwhile() {
    let log = log().await;
    save(&log, "before").await;
    let mut dispatcher = dispatcher(&log).await;
    // Others own all partitions, and go on.
    let through = save(&log, "meanwhile").await;
    assert_eq!(listening(&dispatcher), 1);
    take_over(&mut dispatcher, through).await;
    assert_eq!(listening(&dispatcher), 2);
}

#[tokio::test]
async fn a_takeover_of_what_was_lost_again_follows_nothing() {
    let log = log().await;
    let mut dispatcher = dispatcher(&log).await;
    let gained = dispatcher.partitions.change(&BTreeSet::from([ours()]));
    dispatcher.partitions.change(&BTreeSet::new());
    let taken = Ok((
        gained.round,
        vec![(ours(), TriggerCheckpoint::default(), Vec::new())],
    ));
    dispatcher.take_over(taken).await.unwrap();
    assert!(dispatcher.tail.is_none());
}

#[tokio::test]
async fn what_is_delivered_again_for_another_partition_changes_no_waits() {
    let log = log().await;
    let mut dispatcher = dispatcher(&log).await;
    take_over(&mut dispatcher, 0).await;
    // The run failed, was retried and waits again.
    dispatcher.learn(&[awaited(1, 1), failed(2), awaited(5, 2)]);
    assert_eq!(waiting(&dispatcher), [5]);
    *dispatcher.partitions.get_mut(ours()).unwrap() = 6;
    // Another partition is gained, and the log read again for it.
    dispatcher.learn(&[awaited(1, 1)]);
    assert_eq!(waiting(&dispatcher), [5]);
    dispatcher.learn(&[failed(2)]);
    assert_eq!(waiting(&dispatcher), [5]);
    dispatcher.learn(&[failed(7)]);
    assert!(waiting(&dispatcher).is_empty());
}

#[tokio::test]
async fn a_time_that_comes_while_its_partition_is_claimed_again_is_not_lost() {
    let log = log().await;
    let through = save_on(&log, &org(), "w", &json!({ "schedule": YEARLY })).await;
    let group = join(&log).await;
    let mut dispatcher = dispatcher_in(&group, &log).await;
    take_over(&mut dispatcher, through).await;
    group.leave().await;
    dispatcher.fire();
    assert!(dispatcher.firing.is_empty());
    let now = dispatcher.matcher.clock.now();
    assert!(dispatcher.timers.until_next(now) <= Duration::from_secs(1));

    // The loss and the new claim reach it as one change, in which nothing has changed.
    dispatcher.leases = join(&log).await.leases(Work::Triggers);
    until_owned(&dispatcher).await;
    let fired = async {
        while dispatcher.firing.is_empty() {
            sleep(LOOK).await;
            dispatcher.fire();
        }
        dispatcher.firing.join_next().await
    };
    let fired = timeout(TIMEOUT, fired).await.expect("the time");
    fired.unwrap().unwrap();
    assert_eq!(begun(&log, &org()).await.len(), 1);
}

#[tokio::test]
async fn an_organizations_many_schedules_keep_no_others_waiting() {
    const MANY: usize = 80;
    let log = log().await;
    let (neighbour, yearly) = (neighbour(), json!({ "schedule": YEARLY }));
    for nth in 0..MANY {
        save_on(&log, &org(), &format!("w{nth}"), &yearly).await;
    }
    let through = save_on(&log, &neighbour, "w", &yearly).await;
    let mut dispatcher = dispatcher(&log).await;
    take_over(&mut dispatcher, through).await;
    until_owned(&dispatcher).await;
    dispatcher.fire();
    while let Some(fired) = dispatcher.firing.join_next().await {
        fired.unwrap();
    }
    let (of_many, of_one) = (begun(&log, &org()).await, begun(&log, &neighbour).await);
    assert_eq!((of_many.len(), of_one.len()), (MANY, 1));
    let before = of_many.iter().filter(|run| **run < of_one[0]).count();
    assert!(before < MANY / 2, "it waited for {before} runs of another");
}
