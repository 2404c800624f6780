//! Rebuilding read models while they are in use.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use projector::{Pace, Progress, Rebuilt, RepairError, rebuild};
use schemas::Log;
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

use crate::equality::assert_equal;
use crate::mixed::{Mixer, PROJECTIONS};
use crate::support::{World, eventually, readiness, start};

async fn rebuilt(world: &World, name: &str) -> Rebuilt {
    let stop = CancellationToken::new();
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &[name],
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await;
    rebuilt.unwrap().remove(0)
}

/// The tables with all that belongs to them.
async fn layout(world: &World) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT format('%s %s', tablename, indexdef) FROM pg_indexes WHERE schemaname = 'public'
         UNION ALL
         SELECT format('%s %s %s %s', relname, relpersistence, reloptions, attname)
         FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0
         UNION ALL
         SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
         FROM pg_constraint WHERE connamespace = 'public'::regnamespace
         ORDER BY 1",
    )
    .fetch_all(&world.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn every_projection_is_rebuilt_while_the_projector_goes_on() {
    let world = World::new().await;
    let deps = world.deps();
    let ready = deps.readiness.clone();
    let projector = start(deps);
    let mut mixer = Mixer::new(&world);
    mixer.mix(6).await;
    mixer.applied().await;
    let before = layout(&world).await;
    for (name, table, column) in PROJECTIONS {
        let spoilt = match column {
            Some(column) => format!("UPDATE {table} SET {column} = 'wrong'"),
            None => format!("DELETE FROM {table}"),
        };
        let spoilt = sqlx::query(AssertSqlSafe(spoilt)).execute(&world.pool);
        assert!(spoilt.await.unwrap().rows_affected() > 0, "{name}");
    }
    let done = AtomicBool::new(false);
    let going_on = async {
        while !done.load(Ordering::Relaxed) {
            mixer.mix(1).await;
        }
    };
    let rebuilding = async {
        for (name, ..) in PROJECTIONS {
            let rebuilt = rebuilt(&world, name).await;
            assert_eq!(rebuilt.name, name);
            assert!(rebuilt.position.sequence() > 0, "{name}");
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(going_on, rebuilding);
    mixer.mix(1).await;
    mixer.applied().await;
    for (name, ..) in PROJECTIONS {
        assert_equal(&world, name).await;
    }
    assert_eq!(layout(&world).await, before);
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rebuild%'";
    assert_eq!(world.count(left).await, 0);
    let (status, report) = readiness(&ready).await;
    assert!(status.is_success(), "{report}");
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn several_projections_are_rebuilt_in_one_reading_by_full_batches() {
    let names = ["contacts", "leads", "runs"];
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(2).await;
    with_contacts(&world, 12_000).await;
    mixer.mix(2).await;
    mixer.applied().await;
    for table in names {
        let emptied = format!("DELETE FROM {table}");
        let emptied = sqlx::query(AssertSqlSafe(emptied)).execute(&world.pool);
        assert!(emptied.await.unwrap().rows_affected() > 0, "{table}");
    }
    let read = Mutex::new(Vec::new());
    let tell = |progress: Progress| {
        if progress.doing == "reading the log" {
            read.lock().unwrap().push(progress.done);
        }
    };
    let stop = CancellationToken::new();
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &names,
        Pace::default(),
        &tell,
        &stop,
    );
    let rebuilt = rebuilt.await.unwrap();
    assert!(rebuilt.iter().map(|one| one.name.as_str()).eq(names));
    for name in names {
        assert_equal(&world, name).await;
    }
    let read = read.into_inner().unwrap();
    assert!(read.is_sorted(), "the log was read again: {read:?}");
    assert!(read[0] >= 5_000, "a batch was small: {read:?}");
    projector.stop().await;
    world.end().await;
}

/// A log that takes some batches to be read.
async fn with_contacts(world: &World, count: u32) {
    let end = world
        .append_contacts((0..count).map(|i| format!("c{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
}

/// The number of rows that are as [`falsify`] made them.
const WRONG: &str = "SELECT count(*) FROM contacts WHERE city = 'wrong'";

/// Writes data that no event contains.
async fn falsify(world: &World) {
    sqlx::query("UPDATE contacts SET city = 'wrong'")
        .execute(&world.pool)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_rebuild_that_was_stopped_leaves_everything_and_goes_on_later() {
    let world = World::new().await;
    let projector = world.start();
    with_contacts(&world, 12_000).await;
    falsify(&world).await;
    let stop = CancellationToken::new();
    let tell = |progress: Progress| {
        if progress.done > 0 {
            stop.cancel();
        }
    };
    let stopped = rebuild(
        &world.log,
        &world.pool,
        &["contacts"],
        Pace::default(),
        &tell,
        &stop,
    )
    .await;
    assert!(matches!(stopped, Err(RepairError::Stopped)), "{stopped:?}");
    assert_eq!(
        world.count(WRONG).await,
        12_000,
        "what is read is untouched"
    );
    let copied = "SELECT count(*) FROM rebuild_contacts.contacts";
    let copied = world.count(copied).await;
    assert!(copied > 0 && copied < 12_000, "{copied}");

    let first = Mutex::new(None);
    let tell = |progress: Progress| {
        first.lock().unwrap().get_or_insert(progress.done);
    };
    // The session of the stopped one may still be about to end.
    let stop = CancellationToken::new();
    eventually("the lock is free", async || {
        let again = rebuild(
            &world.log,
            &world.pool,
            &["contacts"],
            Pace::default(),
            &tell,
            &stop,
        )
        .await;
        !matches!(again, Err(RepairError::UnderWay(_)))
    })
    .await;
    let first = first.lock().unwrap().unwrap();
    assert!(
        first > u64::try_from(copied).unwrap(),
        "it began anew at {first}"
    );
    assert_eq!(world.count(WRONG).await, 0);
    assert_equal(&world, "contacts").await;
    projector.stop().await;
    world.end().await;
}

/// Makes a takeover wait for half a second at the server.
const SLOW_TAKEOVER: &str = "
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
    CREATE TRIGGER wait BEFORE UPDATE ON projection_checkpoints FOR EACH ROW
        WHEN (NEW.generation <> OLD.generation) EXECUTE FUNCTION wait()";

#[tokio::test]
async fn a_rebuild_without_a_processor_while_it_takes_over_goes_on_afterwards() {
    let world = World::new().await;
    let projector = world.start();
    with_contacts(&world, 10).await;
    falsify(&world).await;
    sqlx::raw_sql(SLOW_TAKEOVER)
        .execute(&world.pool)
        .await
        .unwrap();
    let blocking = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event = 'PgSleep'";
        eventually("the takeover", async || world.count(waiting).await > 0).await;
        // All tasks of this test share one thread.
        std::thread::sleep(Duration::from_secs(4));
    };
    let (rebuilt, ()) = tokio::join!(rebuilt(&world, "contacts"), blocking);
    assert_eq!(rebuilt.name, "contacts");
    assert_eq!(world.count(WRONG).await, 0);
    assert_equal(&world, "contacts").await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn one_rebuild_of_a_projection_at_a_time() {
    let world = World::new().await;
    let projector = world.start();
    with_contacts(&world, 10).await;
    // A read that holds the table makes the first one wait before it takes over.
    let mut reading = world.pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM contacts")
        .execute(&mut *reading)
        .await
        .unwrap();
    let waiting = tokio::sync::Notify::new();
    let tell = |progress: Progress| {
        if progress.doing.starts_with("waiting") {
            waiting.notify_one();
        }
    };
    let stop = CancellationToken::new();
    let first = rebuild(
        &world.log,
        &world.pool,
        &["contacts"],
        Pace::default(),
        &tell,
        &stop,
    );
    let second = async {
        waiting.notified().await;
        let second = rebuild(
            &world.log,
            &world.pool,
            &["contacts"],
            Pace::default(),
            &|_| (),
            &stop,
        )
        .await;
        assert!(
            matches!(second, Err(RepairError::UnderWay(_))),
            "{second:?}"
        );
        // Others are read, and the projector continues, while the first one waits.
        assert_eq!(world.count("SELECT count(*) FROM totals").await, 1);
        let end = world.append_contacts(["new".to_owned()].into_iter()).await;
        world.caught_up(Log::Events, end.sequence()).await;
        reading.rollback().await.unwrap();
    };
    let (first, ()) = tokio::join!(first, second);
    first.unwrap();
    assert_equal(&world, "contacts").await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn reads_see_all_rows_at_every_moment_of_a_rebuild() {
    let world = World::new().await;
    let projector = world.start();
    with_contacts(&world, 3_000).await;
    let done = AtomicBool::new(false);
    let reading = async {
        let mut position = 0;
        while !done.load(Ordering::Relaxed) {
            let (rows, total, now): (i64, i64, i64) = sqlx::query_as(
                "SELECT (SELECT count(*) FROM contacts),
                        (SELECT count FROM totals WHERE kind = 'contacts'),
                        (SELECT sequence FROM projection_checkpoints WHERE name = 'contacts')",
            )
            .fetch_one(&world.pool)
            .await
            .unwrap();
            assert_eq!((rows, total), (3_000, 3_000));
            assert!(now >= position, "from {position} back to {now}");
            position = now;
        }
    };
    let rebuilding = async {
        for _ in 0..5 {
            rebuilt(&world, "contacts").await;
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(reading, rebuilding);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn rows_from_another_epoch_of_the_log_are_healed_by_a_rebuild() {
    let world = World::new().await;
    let projector = world.start();
    with_contacts(&world, 10).await;
    sqlx::query("UPDATE projection_checkpoints SET epoch = epoch + 1 WHERE name = 'contacts'")
        .execute(&world.pool)
        .await
        .unwrap();
    rebuilt(&world, "contacts").await;
    let end = world
        .append_contacts((0..10).map(|i| format!("d{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    assert_equal(&world, "contacts").await;
    projector.stop().await;
    world.end().await;
}
