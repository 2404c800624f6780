//! Runs as the API shows them: the state, the trigger, and every step with its attempts.

mod outlines;
mod rows;
mod run;

use std::collections::HashSet;

use domain::run::State;
use futures::future::BoxFuture;
use indexmap::map::Entry;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;

use self::outlines::Outlines;
use self::rows::{Folded, Key};
use self::run::Run;
use super::blocks::{self, Blocks, RowKey, Rows};
use super::totals::Totals;
use super::{ApplyError, Projection};

const KIND: &str = "runs";

/// The rows read in one statement. Few batches concern more runs from before.
const RUNS_AT_ONCE: usize = 2_000;

/// How runs are listed: by their workflow.
const ROWS: Rows = Rows {
    table: KIND,
    id: "run_id",
    parent: Some("workflow_id"),
    state: Some(blocks::State::Word("state")),
};

/// The runs of every organization.
#[derive(Default)]
pub(super) struct Runs {
    outlines: Outlines,
}

impl Projection for Runs {
    fn name(&self) -> &'static str {
        KIND
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        // A workflow's events define the steps that a run has before it begins them.
        &[AggregateType::Run, AggregateType::Workflow]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["runs", "workflow_outlines"]
    }

    fn folds_by(&self) -> Vec<String> {
        ROWS.indexes()
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let (mut rest, mut most) = (events.to_vec(), RUNS_AT_ONCE);
            while !rest.is_empty() {
                let begun = begun_before(&rest);
                let asked = &begun[..begun.len().min(most)];
                let (folded, covered) = rows::read(rows, asked).await?;
                // The server weighs all that it is asked for, each time.
                most = (2 * covered).clamp(1, RUNS_AT_ONCE);
                let later: HashSet<Key<'a>> = begun[covered..].iter().copied().collect();
                let is_later = |one: &&Recorded| changes_a_run(one) && later.contains(&key(one));
                let (left, now): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_later);
                self.apply_part(rows, folded, &now).await?;
                rest = left;
            }
            Ok(())
        })
    }
}

impl Runs {
    /// Folds all events of some runs; `folded` are those of them that have rows.
    async fn apply_part<'a>(
        &mut self,
        rows: &mut PgConnection,
        mut folded: Folded<'a>,
        events: &[&'a Recorded],
    ) -> Result<(), ApplyError> {
        self.outlines.prepare(rows, events, &folded).await?;
        for ((org, _), run) in folded.iter_mut().filter(|(_, run)| run.branches()) {
            let version = run.workflow_version;
            run.plan = self.outlines.get(org, &run.workflow_id, version).cloned();
        }
        let gone = self.fold(&mut folded, events)?;
        rows::write(rows, &folded).await?;
        rows::delete(rows, &gone).await?;
        let (totals, blocks) = count(&folded, &gone);
        totals.write(rows).await?;
        blocks.write(rows).await?;
        Ok(())
    }

    /// Folds the events; returns the runs that are forgotten, which are no longer among the others.
    fn fold<'a>(
        &self,
        folded: &mut Folded<'a>,
        events: &[&'a Recorded],
    ) -> Result<Folded<'a>, ApplyError> {
        let mut gone = Folded::new();
        for recorded in events.iter().filter(|recorded| changes_a_run(recorded)) {
            let refused = |reason: &str| ApplyError::Refused(reason.to_owned());
            match (folded.entry(key(recorded)), &recorded.event) {
                // A later reader of the log finds nothing else of the run.
                (Entry::Vacant(_), Event::RunForgotten(_)) => {}
                (Entry::Occupied(run), Event::RunForgotten(_)) => {
                    let (key, run) = run.shift_remove_entry();
                    gone.insert(key, run);
                }
                (Entry::Vacant(place), Event::WorkflowTriggered(triggered)) => {
                    let workflow = triggered.workflow_id.as_str();
                    let (org, version) = (recorded.stream.org.as_str(), triggered.workflow_version);
                    let plan = self.outlines.get(org, workflow, version).ok_or_else(|| {
                        refused("the definition that the run follows is not known")
                    })?;
                    place.insert(Run::triggered(triggered, recorded.time, plan));
                }
                (Entry::Occupied(_), Event::WorkflowTriggered(_)) => {
                    return Err(refused("the run was triggered before"));
                }
                (Entry::Occupied(mut run), event) => run
                    .get_mut()
                    .fold(event, recorded.time)
                    .map_err(ApplyError::Refused)?,
                (Entry::Vacant(_), _) => return Err(refused("the run was never triggered")),
            }
        }
        Ok(gone)
    }
}

fn key(recorded: &Recorded) -> Key<'_> {
    (recorded.stream.org.as_str(), recorded.stream.id.as_str())
}

fn changes_a_run(recorded: &Recorded) -> bool {
    recorded.stream.aggregate == AggregateType::Run && !matches!(recorded.event, Event::Custom(_))
}

/// The runs whose first event in the batch is not their trigger: they already have rows.
fn begun_before<'a>(events: &[&'a Recorded]) -> Vec<Key<'a>> {
    let mut seen = HashSet::with_capacity(events.len());
    events
        .iter()
        .filter(|recorded| changes_a_run(recorded))
        .filter(|recorded| seen.insert(key(recorded)))
        .filter(|recorded| !matches!(recorded.event, Event::WorkflowTriggered(_)))
        .map(|recorded| key(recorded))
        .collect()
}

fn count(folded: &Folded<'_>, gone: &Folded<'_>) -> (Totals, Blocks) {
    let (mut totals, mut blocks) = (Totals::default(), Blocks::of(ROWS));
    let left = folded.iter().map(|(key, run)| (key, run, Some(run.state)));
    let gone = gone.iter().map(|(key, run)| (key, run, None));
    for ((org, id), run, after) in left.chain(gone) {
        let row = |state: State| RowKey {
            org_id: org,
            parent: &run.workflow_id,
            state: state.name(),
            created_at: run.created_at,
            id,
        };
        if let Some(before) = run.before {
            totals.add_within(org, KIND, &run.workflow_id, before.name(), -1);
            blocks.remove(row(before));
        }
        if let Some(after) = after {
            totals.add_within(org, KIND, &run.workflow_id, after.name(), 1);
            blocks.add(row(after));
        }
    }
    (totals, blocks)
}
