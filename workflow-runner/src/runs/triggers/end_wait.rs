//! Ends a wait with the event that it was for.
//!
//! The success is appended after the known end of the run, so that only one of an event, another
//! event and the timeout ends the wait, whichever is quicker.

use std::sync::Arc;

use event_log::AppendError;
use schemas::nesting::{self, MAX_LEVELS};
use schemas::run::Way;
use schemas::{AggregateType, OrgId, Recorded, StreamId};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::draft::Draft;
use super::super::measure;
use super::super::program::{Program, Templates};
use super::super::programs::ProgramError;
use super::super::steps::{MAX_RECORDED, encoded_len, scope_of};
use super::matcher::{AGAIN, Matcher};
use super::waits::Wait;

impl Matcher {
    /// Ends a wait if the event is the one it is for.
    pub(super) async fn end_wait(
        &self,
        org: &OrgId,
        wait: Arc<Wait>,
        recorded: &Recorded,
        data: &Arc<Value>,
    ) {
        let stream = StreamId::new(org, AggregateType::Run, wait.run.as_str());
        loop {
            let Some(events) = self.run(&stream).await else {
                return;
            };
            let Ok(mut draft) = Draft::from_events(&events) else {
                return;
            };
            if !draft.is_open(&wait.step, wait.attempt) {
                return;
            }
            if !self.is_for(&draft, &wait, recorded, data).await {
                return;
            }
            if !self.noter().may_hold(recorded, &stream).await {
                return;
            }
            let outcome = (Way::Next, event_output(recorded, data));
            let now = self.clock.now();
            draft.step_answered(&wait.step, wait.attempt, outcome, now);
            match self.log.commit(draft.commit()).await {
                Ok(_) => return,
                Err(AppendError::Conflict) => {}
                Err(error) if error.passes() => {
                    tracing::debug!(%error, "A WAIT_FOR_EVENT step is waiting for the log");
                    sleep(AGAIN).await;
                }
                Err(error) => {
                    measure::unmatched("wait");
                    tracing::error!(%error, "A wait could not be ended");
                    return;
                }
            }
        }
    }

    async fn is_for(
        &self,
        draft: &Draft,
        wait: &Wait,
        recorded: &Recorded,
        data: &Arc<Value>,
    ) -> bool {
        let (run, org) = (&draft.run, &draft.stream.org);
        let program = loop {
            let program = self
                .renderer
                .programs()
                .get(org, &run.workflow_id, run.workflow_version);
            match program.await {
                Ok(program) => break program,
                Err(ProgramError::Unavailable(_)) => sleep(AGAIN).await,
                // The run's own job ends it.
                Err(_) => return false,
            }
        };
        let until = draft.end_of_wait(&program, &wait.step);
        if until.is_none_or(|until| until < recorded.time) {
            return false;
        }
        match program.templates(&wait.step) {
            Ok(Templates::Wait(None)) => true,
            Ok(Templates::Wait(Some(_))) => {
                self.holds(&program, draft, wait, (recorded, data)).await
            }
            _ => false,
        }
    }

    /// Whether an event is the one that a step waits for.
    async fn holds(
        &self,
        program: &Arc<Program>,
        draft: &Draft,
        wait: &Wait,
        (recorded, data): (&Recorded, &Arc<Value>),
    ) -> bool {
        let scope = scope_of(&draft.run, program).with_event(data);
        let (program, step) = (Arc::clone(program), wait.step.clone());
        let ask = move |meter: &_| program.matches(&step, &scope, meter);
        let holds = self.renderer.ask(&draft.stream.org, ask).await;
        match holds {
            Ok(holds) => holds,
            Err(error) => {
                let notice = self.match_failed(recorded, &draft.run, &wait.step, error);
                self.append(notice.into_iter().collect(), || {}).await;
                false
            }
        }
    }
}

/// What later steps see of an event; data that is too large or nested too deep to be recorded is
/// left out.
pub(super) fn event_output(recorded: &Recorded, data: &Value) -> Value {
    let mut event = json!({
        "id": recorded.id.to_string(),
        "type": recorded.event.name(),
        "time": recorded.time,
        "data": data,
    });
    if encoded_len(data) > MAX_RECORDED || nesting::levels(data) > MAX_LEVELS {
        event["data"] = Value::Null;
        event["truncated"] = Value::Bool(true);
    }
    json!({ "event": event })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::{Context, Event, EventId, run};
    use uuid::Uuid;

    use super::*;

    fn recorded() -> Recorded {
        Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
            id: EventId(Uuid::from_u128(1)),
            time: DateTime::UNIX_EPOCH,
            event: Event::RunStarted(run::Started {
                run_id: "r".into(),
                workflow_id: "w".into(),
            }),
            context: Context::default(),
            receipt: None,
        }
    }

    #[test]
    fn data_that_is_too_large_or_nested_too_deep_is_left_out() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        let kept = nested(MAX_LEVELS);
        let output = event_output(&recorded(), &kept);
        assert_eq!(output["event"]["data"], kept);
        assert_eq!(output["event"].get("truncated"), None);
        for data in [
            nested(MAX_LEVELS + 1),
            json!({ "a": "x".repeat(MAX_RECORDED) }),
        ] {
            let output = event_output(&recorded(), &data);
            assert_eq!(output["event"]["data"], Value::Null);
            assert_eq!(output["event"]["truncated"], true);
        }
    }
}
