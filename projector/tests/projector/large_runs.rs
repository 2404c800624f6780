//! Runs whose stored steps would not fit into memory together.

use schemas::{AggregateType, Log};

use crate::runs::saved;
use crate::support::{World, started, triggered};

/// Gives every run a step with 4 MB.
const ENLARGED: &str = "
    UPDATE runs SET steps = json_build_array(json_build_object('id', 'start', 'type', 'TRIGGER',
        'state', 'QUEUED', 'attempts', '[]'::json, 'input', repeat('a', 4000000), 'output', NULL))";

/// Notes how many bytes of steps each statement changes.
const NOTED: &str = "
    CREATE TABLE changes (bytes bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN
             INSERT INTO changes SELECT sum(octet_length(steps::text)) FROM changed;
             RETURN NULL;
         END';
    CREATE TRIGGER note AFTER UPDATE ON runs REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION note()";

#[tokio::test]
async fn a_batch_of_large_runs_is_folded_some_runs_at_a_time() {
    const RUNS: i64 = 12;
    let world = World::new().await;
    let workflow = world.stream(AggregateType::Workflow, "w1");
    world.append(workflow, 0, vec![saved(1)]).await;
    let mut seen = Vec::new();
    for nth in 0..RUNS {
        let run = format!("r{nth}");
        let stream = world.stream(AggregateType::Run, &run);
        let at = world.append(stream.clone(), 0, vec![triggered(&run, "w1", 1)]);
        seen.push((run, stream, at.await));
    }
    let projector = world.start();
    let (.., end) = &seen[seen.len() - 1];
    world.caught_up(Log::Events, *end).await;
    projector.stop().await;
    for sql in [ENLARGED, NOTED] {
        sqlx::raw_sql(sql).execute(&world.pool).await.unwrap();
    }

    // All of it is one batch: it exists before the projector.
    let mut end = 0;
    for (run, stream, at) in seen {
        end = world.append(stream, at, vec![started(&run, "w1")]).await;
    }
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    let whole = "SELECT count(*) FROM runs
                 WHERE state = 'RUNNING' AND octet_length(steps::text) > 4000000";
    assert_eq!(world.count(whole).await, RUNS);
    let running = "SELECT count FROM totals WHERE kind = 'runs' AND state = 'RUNNING'";
    assert_eq!(world.count(running).await, RUNS);
    let most = world.count("SELECT max(bytes) FROM changes").await;
    assert!(most < 24 * 1024 * 1024, "{most} bytes at once");
    projector.stop().await;
    world.end().await;
}
