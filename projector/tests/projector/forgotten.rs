//! Persons who are forgotten between the position of the serving rows and that of a rebuilt copy,
//! and records that are created again while they are being forgotten.

use projector::{
    Pace, dead_letters, drop_dead_letters_before, left_of_record, rebuild, rows_of_record,
};
use schemas::account::Forgotten;
use schemas::{AccountId, AggregateType, Event, Log};
use tokio_util::sync::CancellationToken;

use crate::circles::{nobodys, registered};
use crate::support::{World, contact, deleted};

const ADA: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);

/// Many positions of both.
const POSITIONS: &str = "
    INSERT INTO positions (account_id, recorded_at, lat, lng, received_at)
    SELECT account, now() - make_interval(secs => n), 1, 2, now()
    FROM generate_series(1, 2) AS account, generate_series(1, 25000) AS n";

/// Notes how many positions each statement deletes.
const NOTED: &str = "
    CREATE TABLE deletions (count bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO deletions SELECT count(*) FROM gone; RETURN NULL; END';
    CREATE TRIGGER note AFTER DELETE ON positions REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION note()";

async fn positions(world: &World) -> [i64; 2] {
    [
        world
            .count("SELECT count(*) FROM positions WHERE account_id = 1")
            .await,
        world
            .count("SELECT count(*) FROM positions WHERE account_id = 2")
            .await,
    ]
}

#[tokio::test]
async fn a_rebuild_beyond_the_projector_deletes_the_positions_of_those_forgotten_in_between() {
    let world = World::new().await;
    let projector = world.start();
    let mut seen = Vec::new();
    for account in [ADA, BOB] {
        let event = registered(&world.log, account, "Somebody").await;
        let stream = nobodys(AggregateType::Account, &account);
        seen.push(world.append(stream, 0, vec![event]).await);
    }
    world.caught_up(Log::Events, seen[1]).await;
    // From here on it lags.
    projector.stop().await;
    for sql in [POSITIONS, NOTED] {
        sqlx::raw_sql(sql).execute(&world.pool).await.unwrap();
    }
    let forgotten = Event::AccountForgotten(Forgotten { account_id: ADA });
    let stream = nobodys(AggregateType::Account, &ADA);
    let end = world.append(stream, seen[0], vec![forgotten]).await;
    assert_eq!(positions(&world).await, [25_000, 25_000]);

    let stop = CancellationToken::new();
    let names = ["accounts"];
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &names,
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await;
    assert_eq!(rebuilt.unwrap()[0].position.sequence(), end);
    assert_eq!(positions(&world).await, [0, 25_000]);
    // The takeover itself, for which others wait, had hardly any left to delete.
    let most = world.count("SELECT max(count) FROM deletions").await;
    assert!(most <= 10_000, "{most} in one statement");

    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    assert_eq!(positions(&world).await, [0, 25_000]);
    let known = "SELECT count(*) FROM accounts WHERE account_id = 2";
    assert_eq!(world.count(known).await, 1);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn the_row_of_a_record_that_was_created_again_does_not_count_for_its_deletion() {
    let world = World::new().await;
    let projector = world.start();
    let stream = world.stream(AggregateType::Contact, "c1");
    let created = || Event::ContactCreated(contact("c1", "Ada"));
    let first = vec![created(), deleted("c1")];
    let deletion = world.append(stream.clone(), 0, first).await;
    let again = world
        .append(stream.clone(), deletion, vec![created()])
        .await;
    world.caught_up(Log::Events, again).await;
    projector.stop().await;
    let left = async |end| left_of_record(&world.pool, "contacts", &stream, end).await;
    let rows = rows_of_record(&world.pool, "contacts", &stream).await;
    assert_eq!(rows.unwrap(), 1);
    assert_eq!(left(deletion).await.unwrap(), 0);
    // Nothing has read this one yet.
    let last = world
        .append(stream.clone(), again, vec![deleted("c1")])
        .await;
    assert_eq!(left(last).await.unwrap(), 1);

    // A dead letter up to the deletion leaves the row of an earlier event.
    sqlx::query(
        "INSERT INTO dead_letters (projection, log, sequence, subject, org_id, aggregate,
             aggregate_id, reason, behind)
         SELECT 'contacts', 'events', sequence, 'the contact', $1, 'contact', 'c1', reason, behind
         FROM (VALUES ($2::bigint, 'broken', NULL::bigint), ($3, NULL, $2))
             AS put_aside (sequence, reason, behind)",
    )
    .bind(world.org.as_str())
    .bind(i64::try_from(deletion).unwrap())
    .bind(i64::try_from(again).unwrap())
    .execute(&world.pool)
    .await
    .unwrap();
    assert_eq!(left(deletion).await.unwrap(), 1);
    let dropped = drop_dead_letters_before(&world.pool, &stream, deletion + 1).await;
    assert_eq!(dropped.unwrap(), 1);
    assert_eq!(left(deletion).await.unwrap(), 0);
    // What came after the deletion still waits.
    let letters = dead_letters(&world.pool).await.unwrap();
    let waiting: Vec<u64> = letters.iter().map(|letter| letter.sequence).collect();
    assert_eq!(waiting, [again]);
    world.end().await;
}
