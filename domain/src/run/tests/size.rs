//! What a run holds is counted as its events come.

use schemas::Event;
use schemas::run::Retried;
use serde_json::{Map, Value, json};

use super::given::{History, at, begun, ended, failed, succeeded};
use crate::run::{End, MAX_DATA, TooLarge};

fn text(bytes: usize) -> Value {
    // With its quotes.
    Value::from("x".repeat(bytes - 2))
}

fn with_input(step: &str, attempt: u32, bytes: usize) -> Event {
    let mut event = begun(step, attempt);
    if let Event::RunStepStarted(begun) = &mut event {
        begun.input = text(bytes);
    }
    event
}

fn with_output(step: &str, attempt: u32, bytes: usize) -> Event {
    let mut event = succeeded(step, attempt);
    if let Event::RunStepSucceeded(ended) = &mut event {
        ended.output = text(bytes);
    }
    event
}

#[test]
fn payload_inputs_and_outputs_of_all_attempts_count_together() {
    let empty = History::started();
    assert_eq!(empty.run.data, "{}".len());
    let given = empty
        .and(with_input("call", 1, 1_000), at(0))
        .and(failed("call", 1, Some(at(1))), at(0))
        .and(with_input("call", 2, 1_000), at(1))
        .and(with_output("call", 2, 5_000), at(1));
    let error = "HTTP 500".len();
    assert_eq!(given.run.data, "{}".len() + 7_000 + error);
}

#[test]
fn a_run_that_is_full_has_room_for_nothing_more() {
    let given = History::started().and(with_output("call", 1, MAX_DATA - 100), at(0));
    let left = MAX_DATA - given.run.data;
    assert_eq!(given.run.room_for(&text(left)), Ok(()));
    assert_eq!(given.run.room_for(&text(left + 1)), Err(TooLarge));
    let full = given.and(with_input("next", 1, left), at(0));
    assert_eq!(full.run.room_for(&json!(1)), Err(TooLarge));
    assert_eq!(
        TooLarge.to_string(),
        "the run would hold more than 4 MiB of payload, inputs and outputs; keep large data \
         elsewhere and pass its address, or divide the workflow"
    );
}

#[test]
fn a_run_that_is_retried_still_holds_what_it_held() {
    let retried = Event::RunRetried(Retried {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    });
    let given = History::started()
        .and(with_output("call", 1, 5_000), at(0))
        .and(ended(&End::Failed("x".to_owned())), at(0))
        .and(retried, at(1));
    assert_eq!(given.run.data, "{}".len() + 5_000);
    assert_eq!(given.run.room_for(&Map::new()), Ok(()));
}
