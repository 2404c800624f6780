//! Whatever the batches and however often they are delivered, and through a rebuild: the blocks
//! that lead to a page are those that the rows of a list make up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use projector::{BATCH, rebuild};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use schemas::record::{Deleted, Order, OrderClient, OrderProduct, OrderStatus};
use schemas::{AggregateType, Event, Log, OrgId, StreamId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::equality::{assert_equal, verified};
use crate::support::{World, start};

const STATUSES: [(OrderStatus, &str); 3] = [
    (OrderStatus::Active, "ACTIVE"),
    (OrderStatus::Completed, "COMPLETED"),
    (OrderStatus::Cancelled, "CANCELLED"),
];

/// Many rows come to be at one moment; some before 1970, and some far from now.
const TIMES: [&str; 4] = [
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "2026-01-01T00:00:00.000001Z",
    "9999-12-31T23:59:59.999999Z",
];

const IDS: usize = 30;

/// What happens to an order of one of two organizations.
#[derive(Clone, Debug)]
struct Change {
    org: usize,
    id: usize,
    /// Status and time by their places above; `None` deletes.
    put: Option<(usize, usize)>,
}

fn change() -> impl Strategy<Value = Change> {
    let put = prop::option::weighted(0.7, (0..STATUSES.len(), 0..TIMES.len()));
    (0..2_usize, 0..IDS, put).prop_map(|(org, id, put)| Change { org, id, put })
}

/// Ids, most of which begin a block, and how far: 1 or 2 levels.
struct Ids(Vec<(String, i16)>);

impl Ids {
    async fn find(world: &World) -> Self {
        let found = sqlx::query_as(
            "WITH tried AS (
                 SELECT 'id' || n AS id, sha256(convert_to('id' || n, 'UTF8')) AS hash
                 FROM generate_series(1, 200000) AS n
             )
             (SELECT id, 2::smallint FROM tried WHERE hash < '\\x0004' LIMIT 5)
             UNION ALL (SELECT id, 1::smallint FROM tried
                        WHERE hash < '\\x01' AND hash >= '\\x0004' LIMIT 10)
             UNION ALL (SELECT id, 0::smallint FROM tried WHERE hash >= '\\x01' LIMIT 15)",
        );
        let found: Vec<_> = found.fetch_all(&world.pool).await.unwrap();
        assert_eq!(found.len(), IDS);
        Self(found)
    }

    fn levels(&self, id: &str) -> i16 {
        let found = self.0.iter().find(|(known, _)| known == id);
        found.map_or(0, |(_, levels)| *levels)
    }
}

fn time(nth: usize) -> DateTime<Utc> {
    TIMES[nth].parse().unwrap()
}

fn event(id: &str, put: Option<(usize, usize)>) -> Event {
    let Some((status, at)) = put else {
        return Event::OrderDeleted(Deleted { id: id.into() });
    };
    Event::OrderUpdated(Order {
        id: id.into(),
        order_number: "1".to_owned(),
        status: STATUSES[status].0,
        amount: 1,
        plan: None,
        client: OrderClient {
            name: None,
            email: None,
        },
        product: OrderProduct { name: None },
        created_at: time(at),
    })
}

struct Writer<'a> {
    world: &'a World,
    ids: &'a Ids,
    orgs: [OrgId; 2],
    seen: BTreeMap<(usize, usize), u64>,
}

impl Writer<'_> {
    async fn append(&mut self, changes: &[Change]) {
        for Change { org, id, put } in changes {
            let name = &self.ids.0[*id].0;
            let stream = StreamId::new(&self.orgs[*org], AggregateType::Order, name);
            let before = self.seen.get(&(*org, *id)).copied().unwrap_or_default();
            let end = self.world.append(stream, before, vec![event(name, *put)]);
            self.seen.insert((*org, *id), end.await);
        }
    }

    fn end(&self) -> u64 {
        self.seen.values().copied().max().unwrap_or_default()
    }
}

/// A block: state of the list, level, time and id of its first row, and how many rows it has.
type Block = (String, i16, Option<DateTime<Utc>>, String, i64);

/// The blocks that an organization's orders make up after all changes.
fn expected(changes: &[Change], org: usize, ids: &Ids) -> BTreeSet<Block> {
    let mut orders = BTreeMap::new();
    for change in changes.iter().filter(|change| change.org == org) {
        let id = ids.0[change.id].0.as_str();
        match change.put {
            None => orders.remove(id),
            Some((status, at)) => orders.insert(id, (STATUSES[status].1, time(at))),
        };
    }
    let mut blocks = BTreeSet::new();
    for state in ["", "ACTIVE", "COMPLETED", "CANCELLED"] {
        let mut list: Vec<_> = orders
            .iter()
            .filter(|(_, (status, _))| state.is_empty() || *status == state)
            .map(|(id, (_, at))| (Reverse(*at), *id))
            .collect();
        list.sort_unstable();
        for level in [1, 2] {
            let mut block: Block = (state.to_owned(), level, None, String::new(), 0);
            for (Reverse(at), id) in &list {
                if ids.levels(id) >= level {
                    blocks.insert(block);
                    block = (state.to_owned(), level, Some(*at), (*id).to_owned(), 0);
                }
                block.4 += 1;
            }
            blocks.insert(block);
        }
    }
    blocks.retain(|block| block.4 > 0);
    blocks
}

async fn read(world: &World, org: &OrgId) -> BTreeSet<Block> {
    let blocks: Vec<Block> = sqlx::query_as(
        "SELECT state, level, nullif(created_at, 'infinity'), id, count FROM list_blocks
         WHERE org_id = $1 AND kind = 'orders' AND parent = ''
           AND age = CASE WHEN id = '' THEN -9223372036854775808
                          ELSE -(extract(epoch FROM created_at) * 1000000)::bigint END",
    )
    .bind(org.as_str())
    .fetch_all(&world.pool)
    .await
    .unwrap();
    let (count, all) = (blocks.len(), blocks.into_iter().collect::<BTreeSet<_>>());
    assert_eq!(count, all.len());
    all
}

async fn check(
    world: &World,
    ids: &Ids,
    changes: &[Change],
    batch: usize,
) -> Result<(), TestCaseError> {
    let orgs = [(); 2].map(|()| OrgId::from(Uuid::new_v4()));
    let before = world.log.end(Log::Events).await.unwrap().sequence();
    let mut deps = world.deps();
    deps.settings.batch = batch;
    let seen = BTreeMap::new();
    let mut writer = Writer {
        world,
        ids,
        orgs,
        seen,
    };
    writer.append(changes).await;
    let expected = [0, 1].map(|org| expected(changes, org, ids));
    for delivery in 0..2 {
        let projector = start(deps.clone());
        world.caught_up(Log::Events, writer.end()).await;
        projector.stop().await;
        for (org, expected) in writer.orgs.iter().zip(&expected) {
            prop_assert_eq!(&read(world, org).await, expected, "delivery {}", delivery);
        }
        // Everything comes once more, in other batches, upon the rows that stand.
        deps.settings.batch = 41 - batch;
        world.project_again_from(before).await;
    }
    let projector = start(deps);
    world.caught_up(Log::Events, writer.end()).await;
    projector.stop().await;
    Ok(())
}

#[test]
fn blocks_are_what_the_rows_of_a_list_make_up() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let ids = runtime.block_on(Ids::find(&world));
    let mut runner = TestRunner::new(Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    });
    let histories = (prop::collection::vec(change(), 1..80), 1..40_usize);
    let outcome = runner.run(&histories, |(changes, batch)| {
        runtime.block_on(check(&world, &ids, &changes, batch))
    });
    runtime.block_on(world.end());
    outcome.unwrap();
}

#[tokio::test]
async fn blocks_are_checked_and_rebuilt_with_their_rows() {
    let world = World::new().await;
    let ids = Ids::find(&world).await;
    let orgs = [(); 2].map(|()| OrgId::from(Uuid::new_v4()));
    let seen = BTreeMap::new();
    let mut writer = Writer {
        world: &world,
        ids: &ids,
        orgs,
        seen,
    };
    let put = |nth: usize| Change {
        org: nth % 2,
        id: nth % IDS,
        put: (!nth.is_multiple_of(7)).then_some((nth % STATUSES.len(), nth % TIMES.len())),
    };
    let changes: Vec<_> = (0..100).map(put).collect();
    let (first, second) = changes.split_at(60);
    writer.append(first).await;
    let projector = world.start();
    world.caught_up(Log::Events, writer.end()).await;
    assert_equal(&world, "orders").await;

    sqlx::query("UPDATE list_blocks SET count = count + 1 WHERE level = 1 AND state = ''")
        .execute(&world.pool)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let wrong = verified(&world, "orders", &|_| (), &stop).await;
    assert!(wrong.unwrap().differences > 0);
    rebuild(&world.log, &world.pool, &["orders"], BATCH, &|_| (), &stop)
        .await
        .unwrap();
    assert_equal(&world, "orders").await;
    // And the projector goes on from them.
    writer.append(second).await;
    world.caught_up(Log::Events, writer.end()).await;
    projector.stop().await;
    for (org, id) in writer.orgs.iter().enumerate() {
        assert_eq!(read(&world, id).await, expected(&changes, org, &ids));
    }
    world.end().await;
}
