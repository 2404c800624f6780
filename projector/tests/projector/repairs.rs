//! Repairs of dead letters that many events wait behind, or that are not the first of their aggregate.

use std::iter::{once, repeat_n};

use projector::{dead_letters, retry_letter, skip_letter, skipped_events};
use schemas::{AggregateType, Event, Log};
use sqlx::{Connection as _, PgConnection};

use crate::poison::unstorable_id;
use crate::support::{World, contact, eventually, nats, started, triggered};

/// Puts a run aside whose definition was never saved, with `count` events in all; returns its dead
/// letter. No projector works afterwards.
async fn set_aside(world: &World, count: usize) -> String {
    let stream = world.stream(AggregateType::Run, "r1");
    let begun = once(triggered("r1", "w1", 1)).chain(repeat_n(started("r1", "w1"), count - 1));
    let end = world.append(stream, 0, begun.collect()).await;
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    projector.stop().await;
    let letters = dead_letters(&world.pool).await.unwrap();
    assert_eq!(letters.len(), count);
    letters[0].id.clone()
}

/// Notes in which transaction events cease to be dead letters.
const NOTED: &str = "
    CREATE TABLE repaired (transaction xid8, count bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN
             INSERT INTO repaired SELECT pg_current_xact_id(), count(*) FROM gone;
             RETURN NULL;
         END';
    CREATE TRIGGER note AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION note()";

#[tokio::test]
async fn a_repair_of_many_events_lets_the_projector_go_on_in_between() {
    let world = World::new().await;
    let id = set_aside(&world, 250).await;
    sqlx::query("INSERT INTO workflow_outlines VALUES ($1, 'w1', 1, '[]')")
        .bind(world.org.as_str())
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::raw_sql(NOTED).execute(&world.pool).await.unwrap();
    let repaired = retry_letter(&world.log, &world.pool, &id).await.unwrap();
    assert_eq!((repaired.applied, repaired.waiting), (250, 0));
    assert!(dead_letters(&world.pool).await.unwrap().is_empty());
    let most = "SELECT max(count)::bigint FROM (
                    SELECT sum(count) AS count FROM repaired GROUP BY transaction) AS of_each";
    let most = world.count(most).await;
    assert!(most <= 100, "{most} in one transaction");
    let running = "SELECT count FROM totals WHERE kind = 'runs' AND state = 'RUNNING'";
    assert_eq!(world.count(running).await, 1);
    world.end().await;
}

/// Makes a repair wait for half a second at the server, in its transaction.
const SLOW_REPAIR: &str = "
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
    CREATE TRIGGER wait BEFORE UPDATE ON projection_checkpoints FOR EACH ROW
        WHEN (NEW.generation <> OLD.generation) EXECUTE FUNCTION wait()";

/// Waits until no session repairs any more, and keeps all tasks of this thread from running.
fn wait_for_the_end_of_its_session(url: &str) {
    let repairing = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'waypost repair'";
    let waiting = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut session = PgConnection::connect(url).await.unwrap();
            eventually("the server ends the repair", async || {
                let repairing = sqlx::query_scalar::<_, i64>(repairing);
                repairing.fetch_one(&mut session).await.unwrap() == 0
            })
            .await;
        });
    };
    std::thread::scope(|threads| threads.spawn(waiting).join().unwrap());
}

#[tokio::test]
async fn a_repair_that_is_stopped_in_a_transaction_loses_it() {
    let world = World::new().await;
    let id = set_aside(&world, 2).await;
    sqlx::raw_sql(SLOW_REPAIR)
        .execute(&world.pool)
        .await
        .unwrap();
    let stopping = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event = 'PgSleep'";
        eventually("the repair", async || world.count(waiting).await > 0).await;
        wait_for_the_end_of_its_session(&world.database_url);
    };
    let (repaired, ()) = tokio::join!(retry_letter(&world.log, &world.pool, &id), stopping);
    assert!(repaired.is_err(), "{repaired:?}");
    assert_eq!(dead_letters(&world.pool).await.unwrap().len(), 2);
    world.end().await;
}

/// Puts aside a contact's event that cannot be applied and a later one that cannot be read; returns
/// their sequences. No projector works afterwards.
async fn set_aside_two(world: &World) -> [u64; 2] {
    let bad = unstorable_id();
    let stream = world.stream(AggregateType::Contact, &bad);
    let created = Event::ContactCreated(contact(&bad, "Bad"));
    let poison = world.append(stream.clone(), 0, vec![created]).await;
    let client = async_nats::jetstream::new(nats().await);
    let subject = world.log.subject_of(&stream);
    let published = client.publish(subject, "?".into()).await.unwrap();
    let unreadable = published.await.unwrap().sequence;
    let projector = world.start();
    world.caught_up(Log::Events, unreadable).await;
    projector.stop().await;
    [poison, unreadable]
}

#[tokio::test]
async fn an_event_that_cannot_be_read_waits_behind_an_earlier_one_that_cannot_be_applied() {
    let world = World::new().await;
    let [poison, unreadable] = set_aside_two(&world).await;
    let letters = dead_letters(&world.pool).await.unwrap();
    let kept: Vec<_> = letters
        .iter()
        .map(|one| (one.sequence, one.behind))
        .collect();
    assert_eq!(kept, [(poison, None), (unreadable, Some(poison))]);
    world.end().await;
}

#[tokio::test]
async fn only_the_first_dead_letter_of_an_aggregate_can_be_skipped() {
    let world = World::new().await;
    let [poison, unreadable] = set_aside_two(&world).await;
    // Both have a reason, as earlier versions wrote them.
    sqlx::query("UPDATE dead_letters SET reason = 'unreadable', behind = NULL")
        .execute(&world.pool)
        .await
        .unwrap();
    let id = format!("contacts:{unreadable}");
    let error = skip_letter(&world.log, &world.pool, &id).await.unwrap_err();
    let behind = format!("waits behind the dead letter contacts:{poison}");
    assert!(error.to_string().contains(&behind), "{error}");
    assert!(skipped_events(&world.pool).await.unwrap().is_empty());

    let id = format!("contacts:{poison}");
    let skipped = skip_letter(&world.log, &world.pool, &id).await.unwrap();
    assert_eq!((skipped.applied, skipped.waiting), (0, 1), "{skipped:?}");
    world.end().await;
}
