//! Events that cannot be applied.

use crate::circles::{nobodys, registered};
use crate::equality::assert_equal;
use crate::runs::saved;
use crate::support::{
    World, contact, deleted, eventually, nats, readiness, start, started, triggered,
};
use axum::http::StatusCode;
use projector::{Pace, dead_letters, rebuild, retry_letter, skip_letter, skipped_events};
use schemas::account::Forgotten;
use schemas::{AccountId, AggregateType, Event, Log};
use uuid::Uuid;

/// An id that no index of Postgres takes: too long, and too random to be compressed.
pub(crate) fn unstorable_id() -> String {
    (0..200)
        .map(|_| Uuid::new_v4().simple().to_string())
        .collect()
}

#[tokio::test]
async fn a_poison_event_parks_only_its_aggregate() {
    let world = World::new().await;
    let bad = unstorable_id();
    let stream = world.stream(AggregateType::Contact, &bad);
    world
        .append_contacts((0..50).map(|i| format!("before-{i}")))
        .await;
    let poison = world
        .append(
            stream.clone(),
            0,
            vec![Event::ContactCreated(contact(&bad, "Bad"))],
        )
        .await;
    let waiting = world
        .append(
            stream.clone(),
            poison,
            vec![Event::ContactUpdated(contact(&bad, "Still"))],
        )
        .await;
    world
        .append_contacts((0..50).map(|i| format!("after-{i}")))
        .await;
    let deps = world.deps();
    let ready = deps.readiness.clone();
    let projector = start(deps);
    world.caught_up(Log::Events, waiting + 50).await;
    // The projector continues, and new events of the aggregate wait as well.
    let last = world.append(stream, waiting, vec![deleted(&bad)]).await;
    let end = world
        .append_contacts((0..1).map(|i| format!("end-{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;

    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 101);
    let total = world
        .count("SELECT count FROM totals WHERE kind = 'contacts'")
        .await;
    assert_eq!(total, 101);
    let letters = dead_letters(&world.pool).await.unwrap();
    let kept: Vec<_> = letters
        .iter()
        .map(|l| (l.sequence, l.behind, l.reason.is_some()))
        .collect();
    let behind = Some(poison);
    assert_eq!(
        kept,
        [
            (poison, None, true),
            (waiting, behind, false),
            (last, behind, false)
        ]
    );
    // It is reported, and takes nothing out of service once the other logs are followed too.
    eventually("every log is followed", async || {
        readiness(&ready).await.0 == StatusCode::OK
    })
    .await;
    let (_, report) = readiness(&ready).await;
    assert!(report.contains("contacts: 1 waiting"), "{report}");
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn an_event_that_cannot_be_read_holds_up_only_its_aggregate() {
    let world = World::new().await;
    let client = async_nats::jetstream::new(nats().await);
    let subject = format!("{}evt.{}.contact.odd", world.prefix, world.org);
    let published = client.publish(subject, "?".into()).await.unwrap();
    let unreadable = published.await.unwrap().sequence;
    let stream = world.stream(AggregateType::Contact, "odd");
    let put = Event::ContactUpdated(contact("odd", "Odd"));
    world.append(stream, unreadable, vec![put]).await;
    let end = world.append_contacts(["fine".to_owned()].into_iter()).await;
    let projector = world.start();
    world.caught_up(Log::Events, end.sequence()).await;

    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 1);
    let letters = dead_letters(&world.pool).await.unwrap();
    let kept: Vec<_> = letters
        .iter()
        .map(|l| (l.projection.as_str(), l.behind))
        .collect();
    assert_eq!(kept, [("contacts", None), ("contacts", Some(unreadable))]);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn what_was_put_aside_is_applied_once_it_can_be() {
    let world = World::new().await;
    // No definition was ever saved: the run cannot be shown.
    let (triggered, started) = (triggered("r1", "w1", 1), started("r1", "w1"));
    let stream = world.stream(AggregateType::Run, "r1");
    let end = world.append(stream, 0, vec![triggered, started]).await;
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    assert_eq!(world.count("SELECT count(*) FROM dead_letters").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM runs").await, 0);
    projector.stop().await;

    sqlx::query("INSERT INTO workflow_outlines VALUES ($1, 'w1', 1, '[]')")
        .bind(world.org.as_str())
        .execute(&world.pool)
        .await
        .unwrap();
    let projector = world.start();
    eventually("the run is applied", async || {
        world
            .count("SELECT count(*) FROM runs WHERE state = 'RUNNING'")
            .await
            == 1
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM dead_letters").await, 0);
    let running = "SELECT count FROM totals WHERE kind = 'runs' AND state = 'RUNNING'";
    assert_eq!(world.count(running).await, 1);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn what_was_put_aside_is_retried_after_what_it_needs() {
    const RUNS: i64 = 20;
    let world = World::new().await;
    // No definition can be stored, and so no run can be shown.
    sqlx::query("ALTER TABLE workflow_outlines ADD CONSTRAINT refused CHECK (version < 0)")
        .execute(&world.pool)
        .await
        .unwrap();
    let mut end = 0;
    for nth in 0..RUNS {
        let (workflow, run) = (format!("w{nth}"), format!("r{nth}"));
        let Event::WorkflowSaved(mut definition) = saved(1) else {
            panic!("not saved");
        };
        definition.workflow_id = workflow.as_str().into();
        let stream = world.stream(AggregateType::Workflow, &workflow);
        let definition = vec![Event::WorkflowSaved(definition)];
        world.append(stream, 0, definition).await;
        let stream = world.stream(AggregateType::Run, &run);
        let begun = vec![triggered(&run, &workflow, 1)];
        end = world.append(stream, 0, begun).await;
    }
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    let aside = world.count("SELECT count(*) FROM dead_letters").await;
    assert_eq!(aside, 2 * RUNS);
    projector.stop().await;

    sqlx::query("ALTER TABLE workflow_outlines DROP CONSTRAINT refused")
        .execute(&world.pool)
        .await
        .unwrap();
    let projector = world.start();
    eventually("every run is applied", async || {
        world.count("SELECT count(*) FROM runs").await == RUNS
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM dead_letters").await, 0);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_retry_applies_what_can_be_applied_now_and_the_projector_goes_on_from_there() {
    let world = World::new().await;
    let stream = world.stream(AggregateType::Run, "r1");
    let begun = vec![triggered("r1", "w1", 1), started("r1", "w1")];
    let first = world.append(stream.clone(), 0, begun).await - 1;
    let projector = world.start();
    world.caught_up(Log::Events, first + 1).await;
    let id = format!("runs:{first}");
    let refused = retry_letter(&world.log, &world.pool, &id).await.unwrap();
    assert_eq!((refused.applied, refused.waiting), (0, 2), "{refused:?}");
    assert!(refused.reason.unwrap().contains("definition"));

    sqlx::query("INSERT INTO workflow_outlines VALUES ($1, 'w1', 1, '[]')")
        .bind(world.org.as_str())
        .execute(&world.pool)
        .await
        .unwrap();
    let applied = retry_letter(&world.log, &world.pool, &id).await.unwrap();
    assert_eq!((applied.applied, applied.waiting), (2, 0), "{applied:?}");
    assert!(dead_letters(&world.pool).await.unwrap().is_empty());
    let again = retry_letter(&world.log, &world.pool, &id).await;
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("is not a dead letter")
    );
    // The next event does not wait any more.
    let ended = Event::RunSucceeded(schemas::run::Succeeded {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    });
    let end = world.append(stream, first + 1, vec![ended]).await;
    world.caught_up(Log::Events, end).await;
    let succeeded = "SELECT count(*) FROM runs WHERE state = 'SUCCEEDED'";
    assert_eq!(world.count(succeeded).await, 1);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_skip_lasts_and_rebuilding_and_checking_respect_it() {
    let world = World::new().await;
    let client = async_nats::jetstream::new(nats().await);
    let subject = format!("{}evt.{}.contact.odd", world.prefix, world.org);
    let published = client.publish(subject, "?".into()).await.unwrap();
    let unreadable = published.await.unwrap().sequence;
    let stream = world.stream(AggregateType::Contact, "odd");
    let put = |name: &str| vec![Event::ContactUpdated(contact("odd", name))];
    let waiting = world.append(stream.clone(), unreadable, put("Ada")).await;
    let deps = world.deps();
    let ready = deps.readiness.clone();
    let projector = start(deps);
    world.caught_up(Log::Events, waiting).await;
    let id = format!("contacts:{waiting}");
    let error = skip_letter(&world.log, &world.pool, &id).await.unwrap_err();
    let behind = format!("waits behind the dead letter contacts:{unreadable}");
    assert!(error.to_string().contains(&behind), "{error}");

    let id = format!("contacts:{unreadable}");
    let skipped = skip_letter(&world.log, &world.pool, &id).await.unwrap();
    assert_eq!((skipped.applied, skipped.waiting), (1, 0), "{skipped:?}");
    let end = world.append(stream, waiting, put("Grace")).await;
    world.caught_up(Log::Events, end).await;
    let named = "SELECT count(*) FROM contacts WHERE first_name = 'Grace'";
    assert_eq!(world.count(named).await, 1);
    assert!(dead_letters(&world.pool).await.unwrap().is_empty());
    let kept = skipped_events(&world.pool).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].sequence, unreadable);
    eventually("nothing waits", async || {
        !readiness(&ready).await.1.contains("waiting")
    })
    .await;

    let stop = tokio_util::sync::CancellationToken::new();
    for _ in 0..2 {
        assert_equal(&world, "contacts").await;
        let rebuilt = rebuild(
            &world.log,
            &world.pool,
            &["contacts"],
            Pace::default(),
            &|_| (),
            &stop,
        )
        .await;
        assert_eq!(rebuilt.unwrap()[0].position.sequence(), end);
    }
    assert_eq!(world.count(named).await, 1);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_rebuild_puts_aside_what_cannot_be_applied_as_the_projector_does() {
    let world = World::new().await;
    let bad = unstorable_id();
    let stream = world.stream(AggregateType::Contact, &bad);
    let made = Event::ContactCreated(contact(&bad, "Bad"));
    let changed = Event::ContactUpdated(contact(&bad, "Still"));
    let end = world.append(stream, 0, vec![made, changed]).await;
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    let before = dead_letters(&world.pool).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &["contacts"],
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await;
    rebuilt.unwrap();
    let after = dead_letters(&world.pool).await.unwrap();
    let ids = |letters: &[projector::DeadLetter]| {
        let ids = letters
            .iter()
            .map(|letter| (letter.id.clone(), letter.behind));
        ids.collect::<Vec<_>>()
    };
    assert_eq!(before.len(), 2);
    assert_eq!(ids(&after), ids(&before));
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn the_end_of_an_account_waits_for_nothing_that_was_put_aside_in_the_same_batch() {
    let world = World::new().await;
    let client = async_nats::jetstream::new(nats().await);
    let accounts = [AccountId(1), AccountId(2), AccountId(3)];
    let mut last = 0;
    for account in accounts {
        let stream = nobodys(AggregateType::Account, &account);
        let named = registered(&world.log, account, "Ottilie Beiseite").await;
        last = world.append(stream.clone(), 0, vec![named.clone()]).await;
        // Nothing of the first can be read, the second has registered twice.
        match account {
            AccountId(1) => {
                let subject = world.log.subject_of(&stream);
                let published = client.publish(subject, "?".into()).await.unwrap();
                last = published.await.unwrap().sequence;
            }
            AccountId(2) => last = world.append(stream.clone(), last, vec![named]).await,
            _ => continue,
        }
        let ended = Event::AccountForgotten(Forgotten {
            account_id: account,
        });
        last = world.append(stream, last, vec![ended]).await;
    }
    let end = world.append_contacts(["fine".to_owned()].into_iter()).await;
    // All of it is one batch: it existed before the projector.
    let projector = world.start();
    world.caught_up(Log::Events, end.sequence()).await;
    assert!(end.sequence() > last);

    let letters = dead_letters(&world.pool).await.unwrap();
    assert!(letters.is_empty(), "{letters:?}");
    let ended = "SELECT count(*) FROM forgotten_accounts";
    assert_eq!(world.count(ended).await, 2);
    let left = "SELECT count(*) FROM accounts WHERE account_id = 3";
    assert_eq!(world.count(left).await, 1, "nobody else's is touched");
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 1);
    projector.stop().await;
    world.end().await;
}
