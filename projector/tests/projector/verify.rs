//! Checking read models: equal rows are reported as equal, and no difference escapes.

use futures::future::join_all;
use projector::{Progress, RepairError, Verified};
use schemas::Log;
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

use crate::equality::verified;
use crate::mixed::{Mixer, PROJECTIONS};
use crate::support::World;

async fn try_check(world: &World, name: &str) -> Result<Verified, RepairError> {
    let stop = CancellationToken::new();
    verified(world, name, &|_| (), &stop).await
}

async fn check(world: &World, name: &str) -> Verified {
    try_check(world, name).await.unwrap()
}

async fn change(world: &World, sql: String) -> u64 {
    let done = sqlx::query(AssertSqlSafe(sql)).execute(&world.pool).await;
    done.unwrap().rows_affected()
}

/// The contents of a table as text.
async fn content(world: &World, table: &str) -> Vec<String> {
    let query = format!("SELECT t::text FROM {table} AS t ORDER BY 1");
    let query = sqlx::query_scalar(AssertSqlSafe(query));
    query.fetch_all(&world.pool).await.unwrap()
}

#[tokio::test]
async fn the_tests_know_every_projection() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(1).await;
    mixer.applied().await;
    let listed = projector::list(&world.log, &world.pool).await.unwrap();
    let listed = listed.iter().map(|one| one.name.as_str());
    let known = PROJECTIONS.map(|(name, ..)| name);
    assert_eq!(listed.collect::<Vec<_>>(), known);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn every_projection_is_found_equal_to_the_log() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(10).await;
    mixer.applied().await;
    for (name, ..) in PROJECTIONS {
        let verified = check(&world, name).await;
        assert_eq!(verified.differences, 0, "{name}: {:?}", verified.reported);
        assert!(verified.position.sequence() > 0, "{name}");
    }
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'verify%'";
    assert_eq!(world.count(left).await, 0, "scratch copies are thrown away");
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_row_changed_removed_or_added_by_hand_is_found_in_every_projection() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(5).await;
    mixer.applied().await;
    projector.stop().await;
    let with_text = PROJECTIONS
        .into_iter()
        .filter_map(|(name, table, column)| Some((name, table, column?)));
    join_all(with_text.map(|one| mistakes_are_found(&world, one))).await;
    world.end_spoilt().await;
}

async fn mistakes_are_found(world: &World, (name, table, column): (&str, &str, &str)) {
    let one = format!("ctid = (SELECT ctid FROM {table} LIMIT 1)");
    let changed = change(
        world,
        format!("UPDATE {table} SET {column} = 'Secret Name' WHERE {one}"),
    );
    assert_eq!(changed.await, 1, "{name}");
    let verified = check(world, name).await;
    assert_eq!(verified.differences, 1, "{name}: {:?}", verified.reported);
    let line = &verified.reported[0];
    assert!(line.starts_with(table) && line.contains(column), "{line}");
    assert!(!line.contains("Secret"), "{line}");

    // Added: the same row under another key. Removed: the one that was changed.
    let (columns, values) = with_another_key(world, table).await;
    let added = format!(
        "INSERT INTO {table} ({columns})
         SELECT {values} FROM {table} WHERE {column} = 'Secret Name'"
    );
    assert_eq!(change(world, added).await, 1, "{name}");
    let gone = format!(
        "DELETE FROM {table} WHERE {column} = 'Secret Name'
         AND ctid = (SELECT min(ctid) FROM {table} WHERE {column} = 'Secret Name')"
    );
    assert_eq!(change(world, gone).await, 1, "{name}");
    let verified = check(world, name).await;
    assert_eq!(verified.differences, 2, "{name}: {:?}", verified.reported);
    let lines = verified.reported.join("\n");
    assert!(lines.contains("missing in the table"), "{lines}");
    assert!(lines.contains("not in the log"), "{lines}");
}

/// The columns of a table that are written, and their values, with one more digit at the end of the
/// first key column that can take one.
async fn with_another_key(world: &World, table: &str) -> (String, String) {
    sqlx::query_as(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), string_agg(CASE WHEN attnum = (
                    SELECT min(one.attnum) FROM pg_attribute AS one
                    WHERE one.attrelid = conrelid AND one.attnum = ANY(conkey)
                      AND one.atttypid IN ('text'::regtype, 'bigint'::regtype))
                THEN format('(%1$I || ''0'')::%2$s', attname, format_type(atttypid, NULL))
                ELSE quote_ident(attname) END, ', ' ORDER BY attnum)
         FROM pg_attribute JOIN pg_constraint ON conrelid = attrelid AND contype = 'p'
         WHERE attrelid = $1::regclass AND attnum > 0 AND attgenerated = ''",
    )
    .bind(table)
    .fetch_one(&world.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn tables_without_text_of_their_own_are_compared_too() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(2).await;
    mixer.applied().await;
    projector.stop().await;
    for (name, sql) in [
        (
            "runs",
            "UPDATE totals SET count = count + 1 WHERE kind = 'runs'",
        ),
        ("orders", "UPDATE revenue_months SET revenue = revenue + 1"),
        ("orders", "UPDATE orders_by_time SET count = count + 1"),
        ("leads", "DELETE FROM leads_by_time"),
        (
            "clients",
            "UPDATE values_by_time SET count = count + 1 WHERE kind = 'clients'",
        ),
        ("contacts", "DELETE FROM totals WHERE kind = 'contacts'"),
        ("runs", "DELETE FROM workflow_outlines"),
        ("circles", "UPDATE sharing_pauses SET until_at = now()"),
        ("sos_calls", "UPDATE sos_calls SET resolved_at = now()"),
        ("crossings", "DELETE FROM crossings"),
        (
            "accounts",
            "INSERT INTO forgotten_accounts VALUES (99, now())",
        ),
    ] {
        let before = check(&world, name).await.differences;
        let changed = change(&world, sql.to_owned()).await;
        let after = check(&world, name).await.differences;
        assert!(changed > 0 && after > before, "{sql}: {before}, {after}");
    }
    // At its end the world compares these with the rows.
    change(&world, "SELECT count_values_by_time()".to_owned()).await;
    world.end().await;
}

#[tokio::test]
async fn checking_changes_nothing_and_holds_nobody_up() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(4).await;
    mixer.applied().await;
    let before = content(&world, "accounts").await;
    let positions = content(&world, "positions").await;
    // The log continues while it is being checked, again and again.
    let going_on = async {
        mixer.mix(4).await;
        mixer.applied().await;
    };
    let checking = async {
        for (name, ..) in PROJECTIONS {
            let verified = check(&world, name).await;
            assert_eq!(verified.differences, 0, "{name}: {:?}", verified.reported);
        }
    };
    tokio::join!(going_on, checking);
    let after = content(&world, "accounts").await;
    assert!(before.iter().all(|row| after.contains(row)));
    let after = content(&world, "positions").await;
    assert!(positions.iter().all(|row| after.contains(row)));
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn what_does_not_exist_cannot_be_checked() {
    let world = World::new().await;
    let error = try_check(&world, "gossip").await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("gossip") && error.contains("contacts"),
        "{error}"
    );
    let error = try_check(&world, "contacts").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("not been begun"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn rows_that_are_about_to_end_are_left_out_with_what_counts_them() {
    let world = World::new().await;
    let projector = world.start();
    let mut mixer = Mixer::new(&world);
    mixer.mix(1).await;
    mixer.applied().await;
    projector.stop().await;
    for (days, differences) in [(40, 0), (1, 2)] {
        let aged = format!(
            "UPDATE deliveries SET created_at = now() - interval '{days} days', event_sequence = 0"
        );
        assert_eq!(change(&world, aged).await, 1);
        let miscounted = "UPDATE totals SET count = 7 WHERE kind = 'deliveries' AND count > 0";
        assert_eq!(change(&world, miscounted.to_owned()).await, 1);
        let verified = check(&world, "deliveries").await;
        assert_eq!(verified.differences, differences, "{:?}", verified.reported);
    }
    world.end().await;
}

#[tokio::test]
async fn a_check_that_is_stopped_leaves_no_copy() {
    let world = World::new().await;
    let projector = world.start();
    let end = world
        .append_contacts((0..8_000).map(|i| format!("c{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    let copies = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'verify%'";
    for (stage, while_doing) in [
        ("reading", "reading the log"),
        ("comparing", "comparing rows"),
    ] {
        let stop = CancellationToken::new();
        let tell = |progress: Progress| {
            if progress.doing == while_doing {
                stop.cancel();
            }
        };
        let stopped = verified(&world, "contacts", &tell, &stop).await;
        assert!(
            matches!(stopped, Err(RepairError::Stopped)),
            "{stage}: {stopped:?}"
        );
        assert_eq!(world.count(copies).await, 0, "{stage}");
    }
    let verified = check(&world, "contacts").await;
    assert_eq!(verified.differences, 0, "{:?}", verified.reported);
    projector.stop().await;
    world.end().await;
}
