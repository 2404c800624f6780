//! Figures of busy organizations.

use schemas::AccountId;

use crate::support::TestApi;

/// Each owns one organization of this log only, so that a session is of that one.
const OWNERS: [AccountId; 2] = [AccountId(7), AccountId(8)];

/// Returns the sums of the two columns of a chart: all, and those that failed.
async fn sums(api: &TestApi, cookie: &str, chart: &str) -> (u64, u64) {
    let path = format!("/dashboard/charts/{chart}.csv");
    let answer = api.get_as(&path, &[("cookie", cookie)]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lines = answer.text();
    let hours = lines.lines().skip(1).map(|line| {
        let mut cells = line.split(',').skip(1);
        let mut next = || cells.next().unwrap().parse::<u64>().unwrap();
        (next(), next())
    });
    hours.fold((0, 0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1))
}

#[tokio::test]
async fn what_failed_is_counted_beside_all_and_not_among_them() {
    let api = TestApi::open().await;
    let cookie = api.staff(OWNERS[0]).await;
    api.execute(
        "INSERT INTO deliveries (org_id, delivery_id, webhook_id, event_id, event_sequence,
                 event_type, status, attempts, created_at, changed_at)
             SELECT $1, 'd' || n, 'hook', gen_random_uuid(), n, 'run.failed', 'FAILED', '[]',
                    now(), now()
             FROM generate_series(1, 60000) AS n",
    )
    .await;
    api.execute("INSERT INTO totals VALUES ($1, 'deliveries', 'hook', '', 60000)")
        .await;
    assert_eq!(sums(&api, &cookie, "deliveries").await, (60_000, 60_000));
    api.close().await;
}

#[tokio::test]
async fn the_runs_of_all_workflows_are_counted() {
    let api = TestApi::open().await;
    let cookie = api.staff(OWNERS[1]).await;
    api.execute(
        "INSERT INTO runs
             SELECT $1, 'r' || n, 'w' || n % 1200, 1,
                    CASE WHEN n % 3 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, '{}',
                    now(), NULL, NULL, NULL, '[]'
             FROM generate_series(1, 3600) AS n",
    )
    .await;
    api.count_lists().await;
    assert_eq!(sums(&api, &cookie, "runs").await, (3_600, 1_200));
    api.close().await;
}
