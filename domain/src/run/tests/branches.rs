//! Branches, waits, and runs that are retried.

use schemas::Event;
use schemas::run::Way;

use super::given::{
    History, TIMEOUT_SECONDS, all, at, begun, condition, delay, ended, failed, graph, http, notify,
    started, succeeded, trigger, wait, waits, went,
};
use crate::run::{
    End, Graph, Next, Reached, State, StepState, Ways, cancel, next, retry, retry_at,
};

fn retried(given: &History) -> Event {
    retry(&given.run).unwrap()
}

/// `start` leads to a condition with a step on either side; both lead to `end`, where all meet.
fn fork() -> Graph {
    graph(vec![
        trigger(&["hot", "other"]),
        condition("hot", &["call"], &["mail"]),
        http("call", &["end"]),
        http("mail", &["end"]),
        http("other", &["end"]),
        all(notify("end", &[])),
    ])
}

#[test]
fn only_the_way_that_is_taken_goes_on() {
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("other", 1), at(0))
        .and(went("hot", 1, Way::Else), at(0));
    assert_eq!(given.begins(&fork(), at(0)), ["mail/1"]);
    let given = given.and(succeeded("mail", 1), at(1));
    assert!(
        given.begins(&fork(), at(1)).is_empty(),
        "other may still come"
    );
    let given = given.and(succeeded("other", 1), at(2));
    assert_eq!(given.begins(&fork(), at(2)), ["end/1"]);
    let given = given.and(succeeded("end", 1), at(3));
    assert_eq!(given.ends(&fork(), at(3)), End::Succeeded);
}

#[test]
fn a_way_that_leads_nowhere_ends_the_run_well() {
    let graph = graph(vec![
        trigger(&["hot"]),
        condition("hot", &["call"], &[]),
        http("call", &[]),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(went("hot", 1, Way::Else), at(0));
    assert_eq!(given.ends(&graph, at(0)), End::Succeeded);
}

fn skipped(graph: &Graph, reached: &[(&str, Reached)]) -> Vec<String> {
    let steps = &graph.definition().steps;
    let by_place: Vec<Reached> = steps
        .iter()
        .map(|step| {
            let found = reached.iter().find(|(id, _)| *id == step.id.as_str());
            found.map_or(Reached::Untouched, |(_, reached)| *reached)
        })
        .collect();
    let ways: Vec<_> = steps.iter().map(|step| (&step.id, step.ways())).collect();
    let mut skipped = Ways::new(&ways).skipped(&by_place);
    skipped.sort_unstable();
    let skipped = skipped.into_iter();
    skipped.map(|place| steps[place].id.to_string()).collect()
}

#[test]
fn what_no_way_leads_to_any_more_is_skipped_and_all_that_hangs_on_it() {
    let graph = graph(vec![
        trigger(&["hot"]),
        condition("hot", &["call"], &["mail"]),
        http("call", &["after", "end"]),
        http("after", &["last"]),
        http("last", &[]),
        http("mail", &["end"]),
        notify("end", &[]),
    ]);
    let left = |way| {
        [
            ("start", Reached::Left(Way::Next)),
            ("hot", Reached::Left(way)),
        ]
    };
    assert_eq!(skipped(&graph, &left(Way::Else)), ["call", "after", "last"]);
    assert_eq!(skipped(&graph, &left(Way::Then)), ["mail"]);
    let open = [
        ("start", Reached::Left(Way::Next)),
        ("hot", Reached::UnderWay),
    ];
    assert!(skipped(&graph, &open).is_empty());
}

#[test]
fn a_step_that_both_ways_lead_to_is_never_skipped() {
    let graph = graph(vec![
        trigger(&["hot"]),
        condition("hot", &["both"], &["both"]),
        http("both", &[]),
    ]);
    let left = [
        ("start", Reached::Left(Way::Next)),
        ("hot", Reached::Left(Way::Else)),
    ];
    assert!(skipped(&graph, &left).is_empty());
}

#[test]
fn a_delay_is_over_exactly_when_its_time_has_come() {
    let graph = graph(vec![
        trigger(&["later"]),
        delay("later", 90.5, &["tell"]),
        notify("tell", &[]),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("later", 1), at(3));
    let Next::Work(work) = next(&given.run, &graph, at(93)) else {
        panic!("no work");
    };
    assert!(work.only_waits());
    let until = work.waiting.clone().unwrap().until;
    assert_eq!((until - at(3)).num_milliseconds(), 90_500);
    assert_eq!(work.wake_at(), until);
    let Next::Work(work) = next(&given.run, &graph, until) else {
        panic!("no work");
    };
    let [(attempt, way)] = work.over.as_slice() else {
        panic!("{work:?}");
    };
    assert_eq!(
        (attempt.step.id.as_str(), attempt.number, *way),
        ("later", 1, Way::Next)
    );
}

#[test]
fn of_two_waits_the_first_wakes_the_run() {
    let graph = graph(vec![
        trigger(&["long", "short"]),
        delay("long", 60.0, &[]),
        delay("short", 5.0, &[]),
    ]);
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("long", 1), at(0))
        .and(begun("short", 1), at(0))
        .and(waits("short", at(5)), at(0))
        .and(succeeded("short", 1), at(5));
    let Next::Work(work) = next(&given.run, &graph, at(5)) else {
        panic!("no work");
    };
    assert_eq!(work.waiting.unwrap().step.as_str(), "long");
}

#[test]
fn a_wait_for_an_event_ends_by_its_timeout_or_with_the_run() {
    let steps = |timeout| {
        graph(vec![
            trigger(&["reply"]),
            wait("reply", timeout, &["yes"], &["no"]),
            notify("yes", &[]),
            notify("no", &[]),
        ])
    };
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("reply", 1), at(1));
    let (short, endless) = (steps(Some(10.0)), steps(None));
    let Next::Work(work) = next(&given.run, &short, at(11)) else {
        panic!("no work");
    };
    assert_eq!(work.over.len(), 1);
    assert_eq!(work.over[0].1, Way::OnTimeout);
    let timeout = i64::try_from(TIMEOUT_SECONDS).unwrap();
    let Next::Work(work) = next(&given.run, &endless, at(timeout - 1)) else {
        panic!("no work");
    };
    assert_eq!((work.over.len(), work.wake_at()), (0, at(timeout)));
    let came = given.clone().and(went("reply", 1, Way::Next), at(2));
    assert_eq!(came.begins(&short, at(2)), ["yes/1"]);
    let late = given.and(went("reply", 1, Way::OnTimeout), at(11));
    assert_eq!(late.begins(&short, at(11)), ["no/1"]);
}

#[test]
fn a_failed_run_goes_on_from_the_steps_that_failed() {
    let graph = graph(vec![
        trigger(&["call", "wait"]),
        http("call", &["tell"]),
        delay("wait", 60.0, &[]),
        notify("tell", &[]),
    ]);
    let error = End::Failed("step call: HTTP 500".to_owned());
    let given = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 1), at(0))
        .and(begun("wait", 1), at(0))
        .and(failed("call", 1, Some(at(1))), at(0))
        .and(begun("call", 2), at(1))
        .and(failed("call", 2, None), at(2))
        .and(ended(&error), at(2));
    let timeout = i64::try_from(TIMEOUT_SECONDS).unwrap();
    let again = at(timeout + 100);
    let given = {
        let event = retried(&given);
        given.and(event, again)
    };
    assert_eq!(given.run.state, State::Queued);
    assert_eq!(next(&given.run, &graph, again), Next::Start);
    let given = given.and(started(), again);
    // The trigger has succeeded and stays so; time counts from here.
    assert_eq!(given.begins(&graph, again), ["call/3", "wait/2"]);
    // The step's attempts are counted from the start.
    let step = &given.run.steps[&"call".into()];
    assert_eq!((step.attempt, step.attempts_before), (2, 2));
    let retry = super::given::retry(3);
    let next_attempt = retry_at(&retry, 3 - step.attempts_before, again, 0.0, None);
    assert!(next_attempt.is_some());
    let given = given
        .and(succeeded("call", 3), again)
        .and(begun("wait", 2), again);
    assert_eq!(given.begins(&graph, again), ["tell/1"]);
}

#[test]
fn a_cancelled_run_can_be_retried_and_others_cannot() {
    let graph = graph(vec![trigger(&["call"]), http("call", &[])]);
    let running = History::started()
        .and(succeeded("start", 1), at(0))
        .and(begun("call", 1), at(0));
    assert_eq!(
        retry(&running.run).unwrap_err().to_string(),
        "the run is RUNNING; only a FAILED or CANCELLED run can be retried"
    );
    let event = cancel(&running.run).unwrap().unwrap();
    let given = running.and(event, at(1));
    let event = retried(&given);
    let given = given.and(event, at(2)).and(started(), at(2));
    assert_eq!(given.begins(&graph, at(2)), ["call/2"]);
    assert_eq!(
        given.run.steps[&"start".into()].state,
        StepState::Succeeded(Way::Next)
    );
    let done = given
        .and(succeeded("call", 2), at(3))
        .and(ended(&End::Succeeded), at(3));
    assert!(
        retry(&done.run)
            .unwrap_err()
            .to_string()
            .contains("SUCCEEDED")
    );
    // A retry that was not allowed changes nothing.
    let event = Event::RunRetried(schemas::run::Retried {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    });
    assert_eq!(done.clone().and(event, at(4)).run, done.run);
}
