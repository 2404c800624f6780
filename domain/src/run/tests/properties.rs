//! Whatever the graph, the outcomes and the crashes: every run ends, and as it must.

use std::collections::HashMap;

use chrono::TimeDelta;
use proptest::prelude::*;
use schemas::run::Way;
use schemas::workflow::{Action, Join, Step};
use schemas::{Event, StepId};

use super::given::{
    History, TIMEOUT_SECONDS, at, begun, condition, delay, ended, failed, graph, http, started,
    succeeded, trigger, wait, waits, went,
};
use crate::run::{End, Graph, Next, Reached, Run, State, StepState, Ways, next, retry_at};

/// The outcome of an attempt: it succeeds, fails, or its outcome is lost with the process.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Succeeds,
    Fails,
    FailsForGood,
    IsLost,
    TakesTooLong,
}

fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    let outcome = prop_oneof![
        12 => Just(Outcome::Succeeds),
        4 => Just(Outcome::Fails),
        1 => Just(Outcome::FailsForGood),
        3 => Just(Outcome::IsLost),
        1 => Just(Outcome::TakesTooLong),
    ];
    prop::collection::vec(outcome, 1..40)
}

/// Any graph: with circles, with steps that nothing leads to, with ways that lead nowhere.
fn graphs() -> impl Strategy<Value = Graph> {
    let ways = prop::collection::vec(prop::collection::vec(0_usize..9, 0..4), 1..9);
    let joins = prop::collection::vec(any::<bool>(), 9);
    let kinds = prop::collection::vec(0_u8..8, 9);
    (ways, joins, kinds).prop_map(|(ways, joins, kinds)| {
        let name = |place: usize| format!("s{place}");
        let steps = ways.iter().enumerate().map(|(place, targets)| {
            let next: Vec<String> = targets.iter().copied().map(name).collect();
            let next: Vec<&str> = next.iter().map(String::as_str).collect();
            let id = name(place);
            let (first, rest) = next.split_at(next.len() / 2);
            let mut step: Step = match (place, kinds[place]) {
                (0, _) => trigger(&next),
                (_, 0) => condition(&id, first, rest),
                (_, 1) => delay(&id, 30.0, &next),
                (_, 2) => wait(&id, Some(40.0), first, rest),
                _ => http(&id, &next),
            };
            step.id = StepId::new(id);
            step.join = if joins[place] { Join::All } else { Join::Any };
            step
        });
        graph(steps.collect())
    })
}

/// Simulates an owner that records as the runner does; a crash is a repeated attempt.
fn play(graph: &Graph, outcomes: &[Outcome]) -> History {
    let mut history = History::triggered();
    let mut outcomes = outcomes.iter().copied().cycle();
    let mut now = at(0);
    for _ in 0..10_000 {
        let (run, moment) = (history.run.clone(), now);
        match next(&run, graph, moment) {
            Next::Ended => return history,
            Next::Start => history.push(started(), now),
            Next::End(end) => history.push(ended(&end), now),
            Next::Work(work) if work.only_waits() => {
                if let (Some(waiting), true) = (&work.waiting, run.state != State::Waiting) {
                    history.push(waits(waiting.step.as_str(), waiting.until), now);
                }
                now = work.wake_at();
            }
            Next::Work(work) if !work.over.is_empty() => {
                for (attempt, way) in &work.over {
                    history.push(went(attempt.step.id.as_str(), attempt.number, *way), now);
                }
            }
            Next::Work(work) => {
                let begin = work.begin.iter();
                begin.for_each(|b| history.push(begun(b.step.id.as_str(), b.number), now));
                let under_way = work.open.iter().chain(&work.begin);
                for attempt in under_way {
                    let id = attempt.step.id.as_str();
                    match attempt.step.action {
                        Action::Condition(_) => {
                            let way = if now.timestamp() % 2 == 0 {
                                Way::Then
                            } else {
                                Way::Else
                            };
                            history.push(went(id, attempt.number, way), now);
                            continue;
                        }
                        Action::Delay(_) | Action::WaitForEvent(_) => continue,
                        _ => {}
                    }
                    let retry = super::given::retry(3);
                    now += TimeDelta::milliseconds(10);
                    match outcomes.next().unwrap_or(Outcome::Succeeds) {
                        Outcome::Succeeds => history.push(succeeded(id, attempt.number), now),
                        Outcome::Fails => {
                            let again = retry_at(&retry, attempt.number, now, 0.5, None);
                            history.push(failed(id, attempt.number, again), now);
                        }
                        Outcome::FailsForGood => {
                            history.push(failed(id, attempt.number, None), now);
                        }
                        Outcome::IsLost => now += TimeDelta::seconds(5),
                        Outcome::TakesTooLong => {
                            now += TimeDelta::seconds(i64::try_from(TIMEOUT_SECONDS).unwrap());
                        }
                    }
                }
            }
        }
    }
    panic!("the run does not end: {:?}", history.run);
}

fn count(history: &History, counts: impl Fn(&Event) -> bool) -> usize {
    history
        .events
        .iter()
        .filter(|(event, _)| counts(event))
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_run_starts_once_and_ends_once(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        prop_assert_eq!(count(&history, |e| matches!(e, Event::RunStarted(_))), 1);
        let ends = |e: &Event| matches!(e, Event::RunSucceeded(_) | Event::RunFailed(_));
        prop_assert_eq!(count(&history, ends), 1);
        prop_assert!(history.run.state.is_end());
    }

    #[test]
    fn no_step_succeeds_twice_or_skips_an_attempt(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        let mut begun: HashMap<StepId, u32> = HashMap::new();
        let mut done: HashMap<StepId, u32> = HashMap::new();
        for (event, _) in &history.events {
            match event {
                Event::RunStepStarted(event) => {
                    prop_assert!(!done.contains_key(&event.step_id), "begun after its success");
                    let last = begun.insert(event.step_id.clone(), event.attempt);
                    prop_assert_eq!(event.attempt, last.unwrap_or(0) + 1);
                    prop_assert!(event.attempt <= 3);
                }
                Event::RunStepSucceeded(event) => {
                    prop_assert_eq!(done.insert(event.step_id.clone(), event.attempt), None);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_step_begins_only_behind_a_success(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        let mut done: Vec<(&StepId, Way)> = Vec::new();
        for (event, _) in &history.events {
            match event {
                Event::RunStepStarted(event) if event.step_id.as_str() != "s0" => {
                    let steps = &graph.definition().steps;
                    let led_to = |way: &Way, ids: &&[StepId]| {
                        ids.contains(&event.step_id).then_some(*way)
                    };
                    let behind = steps.iter().any(|step| {
                        let ways = step.ways();
                        let mut ways = ways.iter().filter_map(|(way, ids)| led_to(way, ids));
                        ways.any(|way| done.contains(&(&step.id, way)))
                    });
                    prop_assert!(behind);
                }
                Event::RunStepSucceeded(event) => done.push((&event.step_id, event.way)),
                _ => {}
            }
        }
    }

    #[test]
    fn a_run_that_succeeds_has_left_nothing_undone(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        let succeeded = history.run.state == State::Succeeded;
        let steps = &graph.definition().steps;
        for step in steps.iter().filter(|step| succeeded && history.run.steps.contains_key(&step.id)) {
            let StepState::Succeeded(taken) = history.run.steps[&step.id].state else {
                panic!("a step of a run that succeeded has not");
            };
            let ways = step.ways();
            let taken = ways.iter().filter(|(way, _)| *way == taken);
            for follower in taken.flat_map(|(_, ids)| ids.iter()).filter(|id| steps.iter().any(|s| s.id == **id)) {
                prop_assert!(history.run.steps.contains_key(follower), "{} never ran", follower);
            }
        }
    }

    /// A step reported as skipped never runs, and in the end no other step is left out.
    #[test]
    fn what_is_skipped_never_runs(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        let steps = &graph.definition().steps;
        let ways: Vec<_> = steps.iter().map(|step| (&step.id, step.ways())).collect();
        let ways = Ways::new(&ways);
        let Some((Event::WorkflowTriggered(triggered), _)) = history.events.first() else {
            panic!("no trigger");
        };
        let mut run = Run::triggered(triggered);
        for (event, at) in &history.events[1..] {
            run.apply(event, *at);
            let reached: Vec<Reached> = steps.iter().map(|step| {
                match run.steps.get(&step.id).map(|step| step.state) {
                    None => Reached::Untouched,
                    Some(StepState::Succeeded(way)) => Reached::Left(way),
                    Some(_) => Reached::UnderWay,
                }
            }).collect();
            for place in ways.skipped(&reached) {
                prop_assert!(!history.run.steps.contains_key(&steps[place].id));
            }
        }
    }

    /// A process may crash after any event: its successor decides as it would have.
    #[test]
    fn any_prefix_of_the_events_decides_the_same(graph in graphs(), outcomes in outcomes()) {
        let history = play(&graph, &outcomes);
        let Some((Event::WorkflowTriggered(triggered), _)) = history.events.first() else {
            panic!("no trigger");
        };
        let mut kept = Run::triggered(triggered);
        for cut in 1..history.events.len() {
            let mut fresh = Run::triggered(triggered);
            history.events[1..cut].iter().for_each(|(event, at)| fresh.apply(event, *at));
            let now = history.events[cut].1;
            prop_assert_eq!(next(&kept, &graph, now), next(&fresh, &graph, now));
            let (event, at) = &history.events[cut];
            kept.apply(event, *at);
        }
        prop_assert_eq!(kept, history.run);
    }

    #[test]
    fn a_run_that_goes_well_succeeds(graph in graphs()) {
        let history = play(&graph, &[Outcome::Succeeds, Outcome::IsLost]);
        let end = history.events.last().map(|(event, _)| event.clone());
        prop_assert_eq!(end, Some(ended(&End::Succeeded)));
    }
}
