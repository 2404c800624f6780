use schemas::{AggregateType, Custom, OrgId};
use serde_json::{Map, json};

use super::*;

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// A run whose steps have begun, as the log has it.
fn begun(steps: &[&str]) -> Vec<Recorded> {
    let triggered = Event::WorkflowTriggered(Triggered {
        run_id: "r".into(),
        workflow_id: "w".into(),
        workflow_version: 1,
        trigger_payload: Map::new(),
    });
    let mut events = vec![recorded(1, triggered)];
    let mut draft = Draft::from_events(&events).unwrap();
    draft.started(NOW);
    for step in steps {
        draft.step_started(&StepId::from(*step), 1, Value::Null, NOW);
    }
    append(&mut events, &draft);
    events
}

/// Appends what a draft has decided.
fn append(events: &mut Vec<Recorded>, draft: &Draft) {
    for new in draft.events() {
        let next = events.len() as u64 + 1;
        events.push(recorded(next, new.event.clone()));
    }
}

fn recorded(sequence: u64, event: Event) -> Recorded {
    Recorded {
        sequence,
        stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
        id: EventId(Uuid::from_u128(sequence.into())),
        time: NOW,
        event,
        context: Context::default(),
        receipt: None,
    }
}

fn succeed(draft: &mut Draft, step: &str) {
    let outcome = (Way::Next, json!({ "of": step }));
    draft.step_succeeded(&StepId::from(step), 1, outcome, NOW);
}

/// The steps that have succeeded in what a draft has decided.
fn succeeded(draft: &Draft) -> Vec<&str> {
    let events = draft.events().iter();
    let steps = events.filter_map(|new| match &new.event {
        Event::RunStepSucceeded(ended) => Some(ended.step_id.as_str()),
        _ => None,
    });
    steps.collect()
}

#[test]
fn an_answer_is_kept_when_another_writer_was_quicker() {
    let mut events = begun(&["call", "reply", "save"]);
    let mut draft = Draft::from_events(&events).unwrap();
    succeed(&mut draft, "call");
    // A record's outcome depends on what the record was.
    let record = StreamId::new(&OrgId::from("o"), AggregateType::Lead, "l");
    let written = Event::Custom(Custom {
        name: "written".to_owned(),
        data: Map::new(),
    });
    draft.push_beside(record, Expected::Empty, written, NOW);
    succeed(&mut draft, "save");
    // What begins is decided again.
    draft.step_started(&StepId::from("next"), 1, Value::Null, NOW);
    draft.step_failed(&StepId::from("next"), 1, "wrong".to_owned(), None, NOW);
    // The matcher has ended the wait.
    let mut matcher = Draft::from_events(&events).unwrap();
    succeed(&mut matcher, "reply");
    append(&mut events, &matcher);

    let outcomes = draft.take_outcomes(|step| step.as_str() != "save");
    let mut again = Draft::from_events(&events).unwrap();
    again.keep(outcomes, NOW);
    assert_eq!(succeeded(&again), ["call"]);
    assert!(
        !again.is_open(&StepId::from("call"), 1),
        "it is not sent again"
    );
    assert!(again.is_open(&StepId::from("save"), 1));
    let commit = again.commit();
    let [own] = &commit.writes[..] else {
        panic!("the record is decided again");
    };
    assert!(matches!(own.expected, Expected::At(6)));
}

#[test]
fn an_answer_is_dropped_when_another_writer_has_recorded_one() {
    let mut events = begun(&["call"]);
    let mut draft = Draft::from_events(&events).unwrap();
    succeed(&mut draft, "call");
    append(&mut events, &draft);
    let outcomes = draft.take_outcomes(|_| true);
    let mut again = Draft::from_events(&events).unwrap();
    again.keep(outcomes, NOW);
    assert!(again.is_empty());
}

#[test]
fn an_answer_that_is_too_much_for_the_run_fails_its_step() {
    let mut draft = Draft::from_events(&begun(&["call"])).unwrap();
    let large = Value::from("x".repeat(domain::run::MAX_DATA));
    draft.step_answered(&StepId::from("call"), 1, (Way::Next, large), NOW);
    let [only] = draft.events() else {
        panic!("one event");
    };
    let Event::RunStepFailed(failed) = &only.event else {
        panic!("{:?}", only.event);
    };
    assert!(failed.error.contains("4 MiB"), "{}", failed.error);
    assert_eq!(failed.retry_at, None);
}
