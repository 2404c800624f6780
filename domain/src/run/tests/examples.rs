//! Given these events, this comes next.

use std::time::Duration;

use chrono::TimeDelta;
use schemas::{AggregateType, Context, Event, EventId, OrgId, Recorded, StreamId};

use super::given::{
    History, TIMEOUT_SECONDS, all, at, begun, ended, failed, graph, http, notify, retry, succeeded,
    trigger, waits,
};
use crate::run::{
    End, Next, NotARun, NotCancellable, Run, State, Waiting, cancel, delay, next, retry_at,
};

#[test]
fn a_triggered_run_is_taken_up_first() {
    let graph = graph(vec![trigger(&[])]);
    let given = History::triggered();
    assert_eq!(given.run.state, State::Queued);
    assert_eq!(next(&given.run, &graph, at(0)), Next::Start);
}

#[test]
fn a_run_that_was_forgotten_is_no_run_whatever_is_left_of_it() {
    let run_id = History::triggered().run.id;
    let forgotten = Event::RunForgotten(schemas::run::Forgotten { run_id });
    let left = [begun("call", 1), forgotten];
    let stream = StreamId::new(&OrgId::from("o"), AggregateType::Run, "r");
    let recorded = left.map(|event| Recorded {
        sequence: 1,
        stream: stream.clone(),
        id: EventId(uuid::Uuid::nil()),
        time: at(0),
        event,
        context: Context::default(),
        receipt: None,
    });
    assert_eq!(Run::fold(&recorded), Err(NotARun::Forgotten));
    assert_eq!(Run::fold(&recorded[1..]), Err(NotARun::Forgotten));
    assert!(State::Waiting.after(&recorded[1].event).is_end());
}

#[test]
fn steps_follow_each_other_until_none_is_left() {
    let graph = graph(vec![
        trigger(&["call"]),
        http("call", &["tell"]),
        notify("tell", &[]),
    ]);
    let mut given = History::started();
    for step in ["start", "call", "tell"] {
        assert_eq!(given.begins(&graph, at(0)), [format!("{step}/1")]);
        given = given.and(begun(step, 1), at(0));
        assert!(
            given.begins(&graph, at(0)).is_empty(),
            "{step} is under way"
        );
        given = given.and(succeeded(step, 1), at(0));
    }
    assert_eq!(given.ends(&graph, at(0)), End::Succeeded);
    let ended = given.and(ended(&End::Succeeded), at(0));
    assert_eq!(next(&ended.run, &graph, at(9_999_999)), Next::Ended);
}

#[test]
fn an_attempt_without_an_outcome_stays_open() {
    let graph = graph(vec![trigger(&["call"]), http("call", &[])]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 2), at(0));
    let Next::Work(work) = next(&given.run, &graph, at(60)) else {
        panic!("no work");
    };
    let open: Vec<_> = work
        .open
        .iter()
        .map(|open| (open.step.id.as_str(), open.number))
        .collect();
    assert_eq!(open, [("call", 2)]);
    assert!(work.begin.is_empty() && work.waiting.is_none());
}

#[test]
fn a_failed_attempt_is_repeated_at_its_time() {
    let graph = graph(vec![trigger(&["call"]), http("call", &[])]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 1), at(0))
        .and(failed("call", 1, Some(at(5))), at(1))
        .and(waits("call", at(5)), at(1));
    assert_eq!(given.run.state, State::Waiting);
    let Next::Work(work) = next(&given.run, &graph, at(4)) else {
        panic!("no work");
    };
    assert!(work.only_waits());
    assert_eq!(
        work.waiting,
        Some(Waiting {
            step: "call".into(),
            until: at(5)
        })
    );
    assert_eq!(work.wake_at(), at(5));
    assert_eq!(given.begins(&graph, at(5)), ["call/2"]);
}

#[test]
fn a_step_that_failed_for_good_fails_the_run() {
    let graph = graph(vec![
        trigger(&["call", "other"]),
        http("call", &[]),
        http("other", &[]),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 1), at(0))
        .and(begun("other", 1), at(0))
        .and(failed("call", 1, None), at(1));
    let reason = "step call: HTTP 500".to_owned();
    assert_eq!(given.ends(&graph, at(1)), End::Failed(reason));
}

#[test]
fn a_run_past_its_time_fails() {
    let graph = graph(vec![trigger(&["call"]), http("call", &[])]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 1), at(0))
        .and(failed("call", 1, Some(at(999_999))), at(1));
    let timeout = i64::try_from(TIMEOUT_SECONDS).unwrap();
    let Next::Work(work) = next(&given.run, &graph, at(timeout - 1)) else {
        panic!("no work");
    };
    assert_eq!(work.wake_at(), at(timeout));
    let reason = "the run did not end within its 3600 seconds".to_owned();
    assert_eq!(given.ends(&graph, at(timeout)), End::Failed(reason));
}

#[test]
fn a_definition_without_a_beginning_fails_the_run() {
    let graph = graph(vec![http("call", &[])]);
    let reason = "the workflow has no TRIGGER step".to_owned();
    assert_eq!(History::started().ends(&graph, at(0)), End::Failed(reason));
}

#[test]
fn a_join_of_any_begins_once_at_the_first() {
    let graph = graph(vec![
        trigger(&["a", "b"]),
        http("a", &["c"]),
        http("b", &["c"]),
        notify("c", &[]),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("a", 1), at(0))
        .and(begun("b", 1), at(0))
        .and(succeeded("a", 1), at(1));
    assert_eq!(given.begins(&graph, at(1)), ["c/1"]);
    let given = given
        .and(succeeded("c", 1), at(1))
        .and(succeeded("b", 1), at(2));
    assert_eq!(given.ends(&graph, at(2)), End::Succeeded);
}

#[test]
fn a_join_of_all_waits_for_every_way_that_can_still_come() {
    let graph = graph(vec![
        trigger(&["a", "b"]),
        http("a", &["end"]),
        http("b", &["c"]),
        http("c", &["end"]),
        http("never", &["end"]),
        all(notify("end", &[])),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(succeeded("a", 1), at(0))
        .and(begun("b", 1), at(0));
    assert!(given.begins(&graph, at(0)).is_empty());
    let given = given.and(succeeded("b", 1), at(0));
    assert_eq!(given.begins(&graph, at(0)), ["c/1"]);
    let given = given.and(succeeded("c", 1), at(0));
    assert_eq!(given.begins(&graph, at(0)), ["end/1"]);
}

#[test]
fn steps_that_wait_for_each_other_do_not_hang_the_run() {
    let graph = graph(vec![
        trigger(&["a", "b"]),
        all(http("a", &["b"])),
        all(http("b", &["a"])),
    ]);
    let given = History::started().and(succeeded("start", 1), at(0));
    assert_eq!(given.begins(&graph, at(0)), ["a/1"]);
    let given = given.and(succeeded("a", 1), at(0));
    assert_eq!(given.begins(&graph, at(0)), ["b/1"]);
}

#[test]
fn a_run_can_be_called_off_until_it_has_ended() {
    let graph = graph(vec![trigger(&[])]);
    let given = History::started();
    let event = cancel(&given.run).unwrap().unwrap();
    assert!(matches!(event, Event::RunCancelled(_)));
    let cancelled = given.clone().and(event, at(1));
    assert_eq!(cancelled.run.state, State::Cancelled);
    assert_eq!(next(&cancelled.run, &graph, at(1)), Next::Ended);
    assert_eq!(cancel(&cancelled.run), Ok(None));
    let ended = given.and(ended(&End::Succeeded), at(1));
    assert_eq!(cancel(&ended.run), Err(NotCancellable::Succeeded));
}

#[test]
fn waits_double_up_to_the_longest_and_chance_only_shortens_them() {
    let retry = retry(10);
    let seconds = |attempt, chance| delay(&retry, attempt, chance).as_secs_f64();
    let waits: Vec<f64> = (1..=8).map(|attempt| seconds(attempt, 0.0)).collect();
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert!((seconds(1, 1.0) - 0.8).abs() < 1e-9);
    assert_eq!(delay(&retry, u32::MAX, 0.5), Duration::from_secs(54));
}

#[test]
fn the_last_attempt_is_not_repeated_and_the_receiver_is_heeded() {
    let retry = retry(3);
    let second = TimeDelta::seconds(1);
    assert_eq!(retry_at(&retry, 1, at(0), 0.0, None), Some(at(0) + second));
    assert_eq!(retry_at(&retry, 2, at(0), 0.0, Some(at(90))), Some(at(90)));
    assert_eq!(retry_at(&retry, 2, at(0), 0.0, Some(at(-9))), Some(at(2)));
    assert_eq!(retry_at(&retry, 3, at(0), 0.0, Some(at(90))), None);
}
