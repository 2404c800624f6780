use chrono::TimeDelta;
use schemas::workflow::Triggered;
use schemas::{Context, EventId, StreamId, run};

use super::*;
use crate::checkpoints::testing::{read, stored};

const KEY: RunKey = RunKey(7);

fn recorded(sequence: u64, event: Event) -> Recorded {
    Recorded {
        sequence,
        stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
        id: EventId(Uuid::from_u128(sequence.into())),
        time: DateTime::UNIX_EPOCH,
        event,
        context: Context::default(),
        receipt: None,
    }
}

fn triggered() -> Event {
    Event::WorkflowTriggered(Triggered {
        run_id: "r".into(),
        workflow_id: "w".into(),
        workflow_version: 1,
        trigger_payload: serde_json::Map::new(),
    })
}

fn retried() -> Event {
    Event::RunRetried(run::Retried {
        run_id: "r".into(),
        workflow_id: "w".into(),
    })
}

fn waiting() -> Event {
    Event::RunWaiting(run::Waiting {
        run_id: "r".into(),
        workflow_id: "w".into(),
        step_id: "call".into(),
        until: until(),
    })
}

fn until() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

/// A run whose job has appended its wait, in a checkpoint from before the job's end was handled.
fn taken_over() -> Partition {
    let mut before = Partition::default();
    assert_eq!(before.fold(KEY, &recorded(5, triggered())), Change::Ready);
    before.open.get_mut(&KEY).unwrap().begin();
    assert_eq!(before.fold(KEY, &recorded(8, waiting())), Change::Nothing);
    before.folded_to = 100;
    read(&stored(&before)).unwrap()
}

#[test]
fn a_run_that_was_taken_over_while_it_waits_is_read_once_until_its_time() {
    let mut partition = taken_over();
    let open = partition.open.get_mut(&KEY).unwrap();
    assert_eq!(open.phase, Phase::Ready);
    assert!(!open.is_untouched(), "it may have more than its trigger");
    open.begin();
    assert_eq!(
        partition.waits(KEY, until(), 8),
        Change::Waits(until()),
        "it is not read again before"
    );
    assert_eq!(partition.open[&KEY].phase, Phase::Waiting(until()));
}

#[test]
fn what_a_job_from_before_a_takeover_leaves_is_looked_at_once_more() {
    let mut partition = taken_over();
    partition.open.get_mut(&KEY).unwrap().phase = Phase::UnderWay;
    assert_eq!(partition.waits(KEY, until(), 8), Change::Ready);
    partition.open.get_mut(&KEY).unwrap().begin();
    assert_eq!(partition.waits(KEY, until(), 8), Change::Waits(until()));
}

#[test]
fn a_job_that_has_not_seen_what_others_wrote_is_followed_by_another() {
    let mut partition = taken_over();
    partition.open.get_mut(&KEY).unwrap().begin();
    assert_eq!(
        partition.fold(KEY, &recorded(101, waiting())),
        Change::Nothing
    );
    assert_eq!(partition.waits(KEY, until(), 8), Change::Ready);
    partition.open.get_mut(&KEY).unwrap().begin();
    assert_eq!(partition.waits(KEY, until(), 101), Change::Waits(until()));
}

#[test]
fn a_run_that_was_retried_outlives_the_job_of_its_first_end_over_a_takeover() {
    let mut before = Partition::default();
    before.fold(KEY, &recorded(50, retried()));
    before.folded_to = 100;
    let mut partition: Partition = read(&stored(&before)).unwrap();
    partition.open.get_mut(&KEY).unwrap().phase = Phase::UnderWay;
    assert_eq!(partition.ended(KEY, 40), Change::Ready);
    assert_eq!(partition.ended(KEY, 120), Change::Ended);
    assert!(partition.open.is_empty());
}

#[test]
fn a_forgotten_run_is_open_no_more_and_what_is_left_of_it_opens_nothing() {
    let forgotten = Event::RunForgotten(run::Forgotten { run_id: "r".into() });
    let mut partition = taken_over();
    let change = partition.fold(KEY, &recorded(101, forgotten.clone()));
    assert_eq!(change, Change::Ended);
    assert!(partition.open.is_empty());
    let again = partition.fold(KEY, &recorded(101, forgotten));
    assert_eq!(again, Change::Nothing);
}
