//! Whatever the batches, the restarts and the order: the rows are a fold of the log.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use schemas::{AggregateType, Event, Log, OrgId, StreamId};
use uuid::Uuid;

use crate::support::{World, contact, deleted, start};

/// Something that happens to one of a few contacts.
#[derive(Clone, Debug)]
enum Change {
    Put { id: u8, name: u8 },
    Delete { id: u8 },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..5u8, any::<u8>()).prop_map(|(id, name)| Change::Put { id, name }),
        1 => (0..5u8).prop_map(|id| Change::Delete { id }),
    ]
}

/// Changes, the maximum number of events in a transaction, and after how many it is restarted.
fn history() -> impl Strategy<Value = (Vec<Change>, usize, usize)> {
    (
        prop::collection::vec(change(), 1..60),
        1..20usize,
        0..60usize,
    )
}

async fn append(
    world: &World,
    org: &OrgId,
    changes: &[Change],
    seen: &mut BTreeMap<u8, u64>,
) -> u64 {
    let mut end = 0;
    for change in changes {
        let (id, event) = match change {
            Change::Put { id, name } => (
                *id,
                Event::ContactUpdated(contact(&id.to_string(), &name.to_string())),
            ),
            Change::Delete { id } => (*id, deleted(&id.to_string())),
        };
        let stream = StreamId::new(org, AggregateType::Contact, id.to_string());
        let before = seen.get(&id).copied().unwrap_or_default();
        end = world.append(stream, before, vec![event]).await;
        seen.insert(id, end);
    }
    end
}

fn fold(changes: &[Change]) -> BTreeMap<String, String> {
    let mut contacts = BTreeMap::new();
    for change in changes {
        match change {
            Change::Put { id, name } => contacts.insert(id.to_string(), name.to_string()),
            Change::Delete { id } => contacts.remove(&id.to_string()),
        };
    }
    contacts
}

async fn check(
    world: &World,
    changes: &[Change],
    batch: usize,
    restart: usize,
) -> Result<(), TestCaseError> {
    let org = OrgId::from(Uuid::new_v4());
    let mut deps = world.deps();
    deps.settings.batch = batch;
    let (first, second) = changes.split_at(restart.min(changes.len()));
    let mut seen = BTreeMap::new();
    append(world, &org, first, &mut seen).await;
    // The first projector is ended wherever it happens to be, the second is there from the start.
    let projector = start(deps.clone());
    let end = append(world, &org, second, &mut seen).await;
    projector.stop().await;
    let projector = start(deps);
    let end = end.max(seen.values().copied().max().unwrap_or_default());
    world.caught_up(Log::Events, end).await;
    projector.stop().await;

    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT id, first_name FROM contacts WHERE org_id = $1")
            .bind(org.as_str())
            .fetch_all(&world.pool)
            .await
            .unwrap();
    let total: Option<i64> =
        sqlx::query_scalar("SELECT count FROM totals WHERE org_id = $1 AND kind = 'contacts'")
            .bind(org.as_str())
            .fetch_optional(&world.pool)
            .await
            .unwrap();
    let expected = fold(changes);
    prop_assert_eq!(
        usize::try_from(total.unwrap_or_default()),
        Ok(expected.len())
    );
    prop_assert_eq!(rows.into_iter().collect::<BTreeMap<_, _>>(), expected);
    Ok(())
}

#[test]
fn rows_are_a_fold_of_the_log_however_it_is_split() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let mut runner = TestRunner::new(Config {
        cases: 32,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&history(), |(changes, batch, restart)| {
        runtime.block_on(check(&world, &changes, batch, restart))
    });
    runtime.block_on(world.end());
    outcome.unwrap();
}
