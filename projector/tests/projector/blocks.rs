//! However events are batched and redelivered, and through a rebuild: the blocks that lead to a
//! page are those that follow from the rows of a list.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use projector::{Pace, rebuild};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use schemas::record::{Deleted, Lead, Order, OrderClient, OrderProduct, OrderStatus};
use schemas::{AggregateType, Event, Log, OrgId, StreamId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::equality::{assert_equal, verified};
use crate::support::{World, start};

/// The number of statuses of a kind that are tried.
const STATUSES: usize = 7;

/// Many rows are created at one moment; some before 1970, and some far from now.
const TIMES: [&str; 4] = [
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "2026-01-01T00:00:00.000001Z",
    "9999-12-31T23:59:59.999999Z",
];

const IDS: usize = 30;

/// Records that are listed by status.
struct Kind {
    table: &'static str,
    aggregate: AggregateType,
    /// Statuses as they are written, each with the state of its list; empty for none.
    statuses: [(String, String); STATUSES],
    put: fn(id: &str, status: &str, at: DateTime<Utc>) -> Event,
    delete: fn(Deleted) -> Event,
}

impl Kind {
    fn orders() -> Self {
        let statuses = ["ACTIVE", "COMPLETED", "CANCELLED"].into_iter().cycle();
        let mut statuses = statuses.map(|word| (word.to_owned(), word.to_owned()));
        Self {
            table: "orders",
            aggregate: AggregateType::Order,
            statuses: [(); STATUSES].map(|()| statuses.next().unwrap()),
            put: order,
            delete: Event::OrderDeleted,
        }
    }

    /// Texts whose first 100 characters are the same, whatever their case, count as one.
    fn leads() -> Self {
        let beginning = "ü".repeat(100);
        let longer = [format!("{}x", "Ü".repeat(100)), format!("{beginning}y")];
        let statuses = [
            ("", ""),
            ("New", "new"),
            ("NEW", "new"),
            ("ŁÓDŹ", "łódź"),
            ("a\0b", "a\u{fffd}b"),
            (longer[0].as_str(), beginning.as_str()),
            (longer[1].as_str(), beginning.as_str()),
        ];
        Self {
            table: "leads",
            aggregate: AggregateType::Lead,
            statuses: statuses.map(|(text, state)| (text.to_owned(), state.to_owned())),
            put: lead,
            delete: Event::LeadDeleted,
        }
    }

    fn event(&self, id: &str, put: Option<(usize, usize)>) -> Event {
        match put {
            None => (self.delete)(Deleted { id: id.into() }),
            Some((status, at)) => (self.put)(id, &self.statuses[status].0, time(at)),
        }
    }
}

fn order(id: &str, status: &str, at: DateTime<Utc>) -> Event {
    let status = match status {
        "ACTIVE" => OrderStatus::Active,
        "COMPLETED" => OrderStatus::Completed,
        _ => OrderStatus::Cancelled,
    };
    Event::OrderUpdated(Order {
        id: id.into(),
        order_number: "1".to_owned(),
        status,
        amount: 1,
        plan: None,
        client: OrderClient {
            name: None,
            email: None,
        },
        product: OrderProduct { name: None },
        created_at: at,
    })
}

fn lead(id: &str, status: &str, at: DateTime<Utc>) -> Event {
    Event::LeadUpdated(Lead {
        id: id.into(),
        name: "Ada".to_owned(),
        phone: None,
        email: None,
        service: None,
        source: None,
        status: (!status.is_empty()).then(|| status.to_owned()),
        score: 1,
        created_at: at,
    })
}

/// What happens to a record of one of two organizations.
#[derive(Clone, Debug)]
struct Change {
    org: usize,
    id: usize,
    /// Status and time as indexes into the above; `None` deletes.
    put: Option<(usize, usize)>,
}

fn change() -> impl Strategy<Value = Change> {
    let put = prop::option::weighted(0.7, (0..STATUSES, 0..TIMES.len()));
    (0..2_usize, 0..IDS, put).prop_map(|(org, id, put)| Change { org, id, put })
}

/// Ids, most of which begin a block, and of how many levels: 1 or 2.
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

struct Writer<'a> {
    world: &'a World,
    ids: &'a Ids,
    kind: &'a Kind,
    orgs: [OrgId; 2],
    seen: BTreeMap<(usize, usize), u64>,
}

impl<'a> Writer<'a> {
    fn new(world: &'a World, ids: &'a Ids, kind: &'a Kind) -> Self {
        Self {
            world,
            ids,
            kind,
            orgs: [(); 2].map(|()| OrgId::from(Uuid::new_v4())),
            seen: BTreeMap::new(),
        }
    }

    async fn append(&mut self, changes: &[Change]) {
        for Change { org, id, put } in changes {
            let name = &self.ids.0[*id].0;
            let stream = StreamId::new(&self.orgs[*org], self.kind.aggregate, name);
            let before = self.seen.get(&(*org, *id)).copied().unwrap_or_default();
            let event = self.kind.event(name, *put);
            let end = self.world.append(stream, before, vec![event]).await;
            self.seen.insert((*org, *id), end);
        }
    }

    fn end(&self) -> u64 {
        self.seen.values().copied().max().unwrap_or_default()
    }
}

/// A block: state of the list, level, time and id of its first row, and how many rows it has.
type Block = (String, i16, Option<DateTime<Utc>>, String, i64);

/// The blocks that follow from an organization's records after all changes.
fn expected(kind: &Kind, changes: &[Change], org: usize, ids: &Ids) -> BTreeSet<Block> {
    let mut records = BTreeMap::new();
    for change in changes.iter().filter(|change| change.org == org) {
        let id = ids.0[change.id].0.as_str();
        match change.put {
            None => records.remove(id),
            Some((status, at)) => records.insert(id, (kind.statuses[status].1.as_str(), time(at))),
        };
    }
    let mut blocks = BTreeSet::new();
    let states: BTreeSet<_> = kind
        .statuses
        .iter()
        .map(|(_, state)| state.as_str())
        .collect();
    for state in [""].into_iter().chain(states) {
        let mut list: Vec<_> = records
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

async fn read(world: &World, kind: &Kind, org: &OrgId) -> BTreeSet<Block> {
    let blocks: Vec<Block> = sqlx::query_as(
        "SELECT state, level, nullif(created_at, 'infinity'), id, count FROM list_blocks
         WHERE org_id = $1 AND kind = $2 AND parent = ''
           AND age = CASE WHEN id = '' THEN -9223372036854775808
                          ELSE -(extract(epoch FROM created_at) * 1000000)::bigint END",
    )
    .bind(org.as_str())
    .bind(kind.table)
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
    kind: &Kind,
    changes: &[Change],
    batch: usize,
) -> Result<(), TestCaseError> {
    let before = world.log.end(Log::Events).await.unwrap().sequence();
    let mut deps = world.deps();
    deps.settings.batch = batch;
    let mut writer = Writer::new(world, ids, kind);
    writer.append(changes).await;
    let expected = [0, 1].map(|org| expected(kind, changes, org, ids));
    for delivery in 0..2 {
        let projector = start(deps.clone());
        world.caught_up(Log::Events, writer.end()).await;
        projector.stop().await;
        for (org, expected) in writer.orgs.iter().zip(&expected) {
            prop_assert_eq!(
                &read(world, kind, org).await,
                expected,
                "delivery {}",
                delivery
            );
        }
        // Everything is delivered once more, in other batches, onto the existing rows.
        deps.settings.batch = 41 - batch;
        world.project_again_from(before).await;
    }
    let projector = start(deps);
    world.caught_up(Log::Events, writer.end()).await;
    projector.stop().await;
    Ok(())
}

fn check_histories(kind: &Kind, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let ids = runtime.block_on(Ids::find(&world));
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let histories = (prop::collection::vec(change(), 1..80), 1..40_usize);
    let outcome = runner.run(&histories, |(changes, batch)| {
        runtime.block_on(check(&world, &ids, kind, &changes, batch))
    });
    runtime.block_on(world.end());
    outcome.unwrap();
}

#[test]
fn blocks_are_what_the_rows_of_a_list_make_up() {
    check_histories(&Kind::orders(), 40);
}

#[test]
fn blocks_by_free_text_are_what_the_rows_of_a_list_make_up() {
    check_histories(&Kind::leads(), 40);
}

#[tokio::test]
async fn blocks_are_checked_and_rebuilt_with_their_rows() {
    for kind in [Kind::orders(), Kind::leads()] {
        check_rebuild(&kind).await;
    }
}

async fn check_rebuild(kind: &Kind) {
    let world = World::new().await;
    let ids = Ids::find(&world).await;
    let mut writer = Writer::new(&world, &ids, kind);
    let put = |nth: usize| Change {
        org: nth % 2,
        id: nth % IDS,
        put: (!nth.is_multiple_of(7)).then_some((nth % STATUSES, nth % TIMES.len())),
    };
    let changes: Vec<_> = (0..100).map(put).collect();
    let (first, second) = changes.split_at(60);
    writer.append(first).await;
    let projector = world.start();
    world.caught_up(Log::Events, writer.end()).await;
    assert_equal(&world, kind.table).await;

    sqlx::query("UPDATE list_blocks SET count = count + 1 WHERE level = 1 AND state <> ''")
        .execute(&world.pool)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let wrong = verified(&world, kind.table, &|_| (), &stop).await;
    assert!(wrong.unwrap().differences > 0);
    rebuild(
        &world.log,
        &world.pool,
        &[kind.table],
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await
    .unwrap();
    assert_equal(&world, kind.table).await;
    // And the projector continues from them.
    writer.append(second).await;
    world.caught_up(Log::Events, writer.end()).await;
    projector.stop().await;
    for (org, id) in writer.orgs.iter().enumerate() {
        assert_eq!(
            read(&world, kind, id).await,
            expected(kind, &changes, org, &ids)
        );
    }
    world.end().await;
}
