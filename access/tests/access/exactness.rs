//! The statements in Postgres against a model that adds up everything.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::PgPool;
use sqlx::types::chrono::TimeZone;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::support::Database;

const EPOCH: i64 = 1_800_000_000;

/// The columns that `admit` returns.
type Answer = (
    Vec<i64>,
    Vec<i64>,
    Vec<i64>,
    Vec<i64>,
    Option<Vec<Option<i64>>>,
);

type Asked = (usize, i64, i64);

/// The window that the counters of one world share.
#[derive(Clone, Copy, Debug)]
struct Window {
    span: i64,
    fixed: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// Time advances by this many milliseconds.
    Wait(i64),
    /// Checks of this cost, of some counters, in one call: counter, checks, and the seconds ahead
    /// that they also cover.
    Admit(i64, Vec<Asked>),
    /// Use that is written late: counter, seconds ago, use.
    CountBack(usize, i64, i64),
}

/// Remembers every use and adds up those that count.
struct Model {
    window: Window,
    quota: i64,
    counted: Vec<(i64, i64)>,
    /// The last second that anything was requested for.
    latest: i64,
}

impl Model {
    fn bucket(&self, second: i64) -> i64 {
        if self.window.fixed {
            second - second % self.window.span
        } else {
            second
        }
    }

    fn frees(&self, second: i64) -> i64 {
        self.bucket(second) + self.window.span + i64::from(!self.window.fixed)
    }

    fn used(&self, now: i64) -> i64 {
        let counting = self
            .counted
            .iter()
            .filter(|(second, _)| self.frees(*second) > now);
        counting.map(|(_, used)| used).sum()
    }

    /// Checks count under the last second that they are for, or that others before them were for.
    fn admit(&mut self, now: i64, cost: i64, checks: i64, ahead: i64) -> i64 {
        let ahead = if self.window.fixed { 0 } else { ahead };
        self.latest = self.latest.max(now + ahead);
        let mut admitted = 0;
        while admitted < checks && self.used(now) + cost <= self.quota {
            self.counted.push((self.latest, cost));
            admitted += 1;
        }
        admitted
    }

    fn eases_at(&self, now: i64) -> Option<i64> {
        let ends = self.counted.iter().map(|(second, _)| self.frees(*second));
        ends.filter(|end| *end > now).min()
    }

    fn retry_at(&self, now: i64, cost: i64) -> i64 {
        let mut second = now + 1;
        while self.used(second) + cost > self.quota {
            second += 1;
        }
        second
    }
}

fn windows() -> impl Strategy<Value = Window> {
    (1..9_i64, any::<bool>()).prop_map(|(span, fixed)| Window { span, fixed })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let check = (0..4_usize, 1..6_i64, prop_oneof![Just(0), 0..4_i64]);
    let admit = (1..4_i64, prop::collection::vec(check, 1..4));
    let step = prop_oneof![
        2 => (0..2_500_i64).prop_map(Step::Wait),
        1 => (0..12_000_i64).prop_map(Step::Wait),
        4 => admit.prop_map(|(cost, checks)| Step::Admit(cost, checks)),
        1 => (0..4_usize, 0..10_i64, 1..4_i64)
            .prop_map(|(counter, ago, used)| Step::CountBack(counter, ago, used)),
    ];
    prop::collection::vec(step, 1..40)
}

/// One world of counters in the database and in the model.
struct World<'a> {
    pool: &'a PgPool,
    name: String,
    models: Vec<Model>,
    now_ms: i64,
}

impl World<'_> {
    fn counter(&self, index: usize) -> String {
        format!("{}/{index}", self.name)
    }

    fn moment(&self) -> DateTime<Utc> {
        Utc.timestamp_millis_opt(self.now_ms).unwrap()
    }

    async fn follow(&mut self, step: Step) {
        let now = self.now_ms / 1_000;
        match step {
            Step::Wait(ms) => self.now_ms += ms,
            Step::CountBack(counter, ago, used) => {
                let index = counter % self.models.len();
                self.count_back(index, now - ago, used).await;
                let model = &mut self.models[index];
                if model.frees(now - ago) > now {
                    model.counted.push((now - ago, used));
                }
            }
            Step::Admit(cost, checks) => self.admit(now, cost, checks).await,
        }
    }

    async fn count_back(&self, index: usize, second: i64, used: i64) {
        let window = self.models[index].window;
        sqlx::query("SELECT count_back($1, $2, $3, $4, $5, $6)")
            .bind([self.counter(index)])
            .bind([second])
            .bind([used])
            .bind(window.span)
            .bind(window.fixed)
            .bind(self.moment())
            .execute(self.pool)
            .await
            .unwrap();
    }

    async fn admit(&mut self, now: i64, cost: i64, mut checks: Vec<Asked>) {
        for (counter, ..) in &mut checks {
            *counter %= self.models.len();
        }
        checks.retain(|(counter, ..)| cost <= self.models[*counter].quota);
        checks.sort_by_key(|(counter, ..)| *counter);
        checks.dedup_by_key(|(counter, ..)| *counter);
        let quotas = checks
            .iter()
            .map(|(counter, ..)| self.models[*counter].quota);
        let window = self.models[0].window;
        let (places, admitted, used, eases_at, retry_at): Answer = sqlx::query_as(
            "SELECT places, admitted, used, eases_at, retry_at FROM admit($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(checks.iter().map(|(counter, ..)| self.counter(*counter)).collect::<Vec<_>>())
        .bind(quotas.collect::<Vec<_>>())
        .bind(checks.iter().map(|(_, count, _)| *count).collect::<Vec<_>>())
        .bind(checks.iter().map(|(.., ahead)| *ahead).collect::<Vec<_>>())
        .bind(cost)
        .bind(window.span)
        .bind(window.fixed)
        .bind(self.moment())
        .fetch_one(self.pool)
        .await
        .unwrap();
        assert_eq!(places.len(), checks.len());
        let retry_at = retry_at.unwrap_or_else(|| vec![None; places.len()]);
        let row = |n: usize| (places[n], admitted[n], used[n], eases_at[n], retry_at[n]);
        let mut rows: Vec<_> = (0..places.len()).map(row).collect();
        rows.sort_unstable();

        for ((place, (counter, count, ahead)), row) in (1..).zip(checks).zip(rows) {
            let model = &mut self.models[counter];
            let admitted = model.admit(now, cost, count, ahead);
            let retry_at = (admitted < count).then(|| model.retry_at(now, cost));
            // If nothing counts, nothing eases: the latest second is used.
            let eases_at = model.eases_at(now).unwrap_or(model.frees(model.latest));
            assert_eq!(row, (place, admitted, model.used(now), eases_at, retry_at));
        }
    }
}

#[test]
fn decisions_are_those_of_a_model_that_adds_up_everything() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(Database::create());
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let quotas = prop::collection::vec(1..12_i64, 1..4);
    let result = runner.run(&(windows(), quotas, steps()), |(window, quotas, steps)| {
        let model = |quota| Model {
            window,
            quota,
            counted: Vec::new(),
            latest: 0,
        };
        let mut world = World {
            pool: &database.pool,
            name: Uuid::new_v4().to_string(),
            models: quotas.into_iter().map(model).collect(),
            now_ms: EPOCH * 1_000,
        };
        for step in steps {
            runtime.block_on(world.follow(step));
        }
        Ok(())
    });
    result.unwrap();
    runtime.block_on(database.drop());
}
