//! Forgets the runs that hold data of a person: what events said of the person was copied into them
//! in clear, so that no key's end makes it unreadable.

use std::collections::BTreeSet;

use event_log::noted_run;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::{AccountId, Event, Recorded, RunId, StreamId, run};

use super::forget::ForgetError;
use crate::commands::{Decision, Past};
use crate::{Commands, Origin};

/// Runs that are forgotten at the same time.
const SIDE_BY_SIDE: usize = 16;

/// Forgets every run that is noted for the person, and erases the notes. Returns how many events of
/// runs were erased. A note is erased only after its run, so that this can be repeated.
pub(super) async fn forget_runs(
    commands: &Commands,
    origin: &Origin,
    id: AccountId,
) -> Result<u64, ForgetError> {
    let log = commands.log();
    let notes = log.runs_about(id);
    let mut erased = 0;
    loop {
        let page = log.first_page(&notes).await?;
        let Some(last) = page.last() else {
            return Ok(erased);
        };
        // Where an event was matched again, its run was noted again.
        let runs = page.iter().filter_map(|note| noted_run(&note.event));
        let runs: BTreeSet<StreamId> = runs.collect();
        let runs = runs.into_iter();
        let forgotten = runs.map(|run| forget_run(commands, origin, run));
        let events: Vec<u64> = stream::iter(forgotten)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        erased += events.into_iter().sum::<u64>();
        log.erase_before(&notes, last.sequence + 1).await?;
    }
}

/// Ends the run's stream by saying that it is forgotten, and erases everything before that. A run
/// that was noted and has not begun must not begin later, so its stream says so as well.
async fn forget_run(
    commands: &Commands,
    origin: &Origin,
    run: StreamId,
) -> Result<u64, ForgetError> {
    let decide = |past: &[Recorded], _| {
        let last = past.last().map(|last| &last.event);
        let is_said = matches!(last, Some(Event::RunForgotten(_)));
        let run_id = RunId::from(run.id.as_str());
        let said = (!is_said).then(|| Event::RunForgotten(run::Forgotten { run_id }));
        Ok(Decision::new((), said))
    };
    let said = commands.execute(origin, &run, Past::Last, decide).await?;
    let end = said.position.sequence();
    Ok(commands.log().erase_before(&run, end).await?)
}
