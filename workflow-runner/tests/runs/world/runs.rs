//! Runs in a test's world: triggering, reading, awaiting and cancelling them.

use std::sync::Arc;

use event_log::Commit;
use schemas::workflow::Triggered;
use schemas::{AggregateType, Event, Recorded, RunId, StreamId, WorkflowId, run};
use serde_json::Value;
use uuid::Uuid;

use super::{LOOK, TIMEOUT, World, commit};

impl World {
    pub(crate) async fn trigger(&self, workflow: &str, payload: Value) -> RunId {
        self.trigger_version(workflow, 1, payload).await
    }

    pub(crate) async fn trigger_version(
        &self,
        workflow: &str,
        version: u32,
        payload: Value,
    ) -> RunId {
        let (id, commit) = self.triggering(workflow, version, payload);
        self.log.commit(commit).await.unwrap();
        id
    }

    /// Triggers a run if the log accepts it.
    pub(crate) async fn try_trigger(&self, workflow: &str) -> Option<RunId> {
        let (id, commit) = self.triggering(workflow, 1, serde_json::json!({}));
        self.log.commit(commit).await.ok().map(|_| id)
    }

    /// Triggers a run, and immediately cancels and retries it in one commit; `None` if it had been
    /// begun by then.
    pub(crate) async fn trigger_cancel_and_retry(&self, workflow: &str) -> Option<RunId> {
        let (id, triggering) = self.triggering(workflow, 1, serde_json::json!({}));
        let seen = self.log.commit(triggering).await.unwrap().sequence();
        let (run_id, workflow_id) = (id.clone(), WorkflowId::from(workflow));
        let cancelled = Event::RunCancelled(run::Cancelled {
            run_id: run_id.clone(),
            workflow_id: workflow_id.clone(),
        });
        let retried = Event::RunRetried(run::Retried {
            run_id,
            workflow_id,
        });
        let stream = self.stream(&id);
        let mut both = commit(&stream, Some(seen), cancelled);
        let retrying = commit(&stream, Some(seen), retried);
        let retrying = retrying.writes.into_iter().flat_map(|write| write.events);
        both.writes[0].events.extend(retrying);
        match self.log.commit(both).await {
            Ok(_) => Some(id),
            Err(event_log::AppendError::Conflict) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Triggers many runs at once.
    pub(crate) async fn trigger_many(&self, workflow: &str, count: usize) -> Vec<RunId> {
        let triggers =
            (0..count).map(|nth| self.triggering(workflow, 1, serde_json::json!({ "n": nth })));
        let (ids, commits): (Vec<_>, Vec<_>) = triggers.unzip();
        for done in self.log.commit_each(commits).await {
            done.unwrap();
        }
        ids
    }

    fn triggering(&self, workflow: &str, version: u32, payload: Value) -> (RunId, Commit) {
        let id = RunId::from(Uuid::now_v7());
        let Value::Object(trigger_payload) = payload else {
            panic!("a payload is an object");
        };
        let triggered = Event::WorkflowTriggered(Triggered {
            run_id: id.clone(),
            workflow_id: WorkflowId::from(workflow),
            workflow_version: version,
            trigger_payload,
        });
        let commit = commit(&self.stream(&id), None, triggered);
        (id, commit)
    }

    pub(crate) fn stream(&self, run: &RunId) -> StreamId {
        StreamId::new(&self.org, AggregateType::Run, run.as_str())
    }

    pub(crate) async fn events(&self, run: &RunId) -> Vec<Recorded> {
        self.log.load(&self.stream(run)).await.unwrap()
    }

    /// The events' names in order, without their common prefix.
    pub(crate) async fn names(&self, run: &RunId) -> Vec<String> {
        let events = self.events(run).await;
        let name = |recorded: &Recorded| recorded.event.name().replace("run.", "");
        events.iter().map(name).collect()
    }

    /// Every run of a workflow, in the order in which they were triggered.
    pub(crate) async fn runs_of(&self, workflow: &str) -> Vec<Recorded> {
        let mut triggered = Vec::new();
        self.more_runs_of(workflow, 0, &mut triggered).await;
        triggered
    }

    /// Adds the runs after `after`; returns how far it read.
    async fn more_runs_of(
        &self,
        workflow: &str,
        mut after: u64,
        triggered: &mut Vec<Recorded>,
    ) -> u64 {
        loop {
            let kind = Some(AggregateType::Run);
            let page = self
                .log
                .page(schemas::Log::Events, &self.org, kind, after, 1_000);
            let page = page.await.unwrap();
            for item in page.items {
                match item {
                    event_log::Item::Event(recorded) => match &recorded.event {
                        Event::WorkflowTriggered(of) if of.workflow_id.as_str() == workflow => {
                            triggered.push(Arc::unwrap_or_clone(recorded));
                        }
                        _ => {}
                    },
                    other @ event_log::Item::Undecodable { .. } => panic!("{other:?}"),
                }
            }
            after = page.through;
            if page.complete {
                return after;
            }
        }
    }

    /// Waits until a workflow has at least `count` runs.
    pub(crate) async fn until_runs(&self, workflow: &str, count: usize) -> Vec<Recorded> {
        let end = tokio::time::Instant::now() + TIMEOUT;
        let (mut runs, mut after) = (Vec::new(), 0);
        loop {
            after = self.more_runs_of(workflow, after, &mut runs).await;
            if runs.len() >= count {
                return runs;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "{} of {count} runs",
                runs.len()
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Cancels a run like the API does.
    pub(crate) async fn cancel(&self, run: &RunId) {
        loop {
            let events = self.events(run).await;
            let Event::WorkflowTriggered(triggered) = &events[0].event else {
                panic!("no trigger");
            };
            let cancelled = Event::RunCancelled(run::Cancelled {
                run_id: run.clone(),
                workflow_id: triggered.workflow_id.clone(),
            });
            let seen = events.last().map(|last| last.sequence);
            let commit = commit(&self.stream(run), seen, cancelled);
            match self.log.commit(commit).await {
                Ok(_) => return,
                Err(event_log::AppendError::Conflict) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until the run has ended; returns its last event.
    pub(crate) async fn ended(&self, run: &RunId) -> Event {
        self.until(run, "the end", is_end).await
    }

    /// Waits until the run's last event satisfies `is_it`.
    pub(crate) async fn until(
        &self,
        run: &RunId,
        what: &str,
        is_it: impl Fn(&Event) -> bool,
    ) -> Event {
        let stream = self.stream(run);
        let end = tokio::time::Instant::now() + TIMEOUT;
        loop {
            // The log may be unavailable briefly in tests that intend it.
            let last = self.log.last(&stream).await.ok().flatten();
            let last = last.map(|last| last.event);
            match last {
                Some(last) if is_it(&last) => return last,
                _ => {}
            }
            assert!(
                tokio::time::Instant::now() < end,
                "{what} does not come, the last event is {last:?}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}

pub(crate) fn is_end(event: &Event) -> bool {
    matches!(
        event,
        Event::RunSucceeded(_) | Event::RunFailed(_) | Event::RunCancelled(_)
    )
}
