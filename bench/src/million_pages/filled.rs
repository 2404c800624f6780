//! Runs and deliveries. Creating a million of each through the log would take an hour, so their
//! rows are written as the projector leaves them.

use std::time::Instant;

use sqlx::{Connection as _, PgConnection};

use super::{List, Reader, Sample};
use crate::report::Report;
use crate::system::System;

/// The workflow whose runs are listed, and the endpoint whose deliveries are.
pub(super) const WORKFLOW: &str = "w";
pub(super) const WEBHOOK: &str = "hook";
/// The final state of five of six runs.
const STATE: &str = "SUCCEEDED";
/// The event type of five of six deliveries.
const TYPE: &str = "run.succeeded";

/// Deliveries need an existing endpoint.
const ENDPOINT: &str = "INSERT INTO webhooks
     SELECT $1, $2, 'https://example.com/', '{}', NULL, 'ENABLED', NULL, now(), now()";

const RUNS: &str = "INSERT INTO runs (org_id, run_id, workflow_id, workflow_version, state,
         trigger_payload, created_at, started_at, ended_at, error, steps)
     SELECT $1, md5(n::text), $2, 1, CASE n % 6 WHEN 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
            json_build_object('email', 'person' || n || '@example.com', 'score', n % 100),
            at, at, at + interval '1 second', CASE n % 6 WHEN 0 THEN 'not this time' END,
            json_build_array(
                json_build_object('id', 'start', 'type', 'TRIGGER', 'state', 'SUCCEEDED',
                    'attempts', json_build_array(json_build_object('number', 1, 'startedAt', at,
                        'endedAt', at, 'error', NULL)),
                    'input', NULL, 'output', NULL),
                json_build_object('id', 'tell', 'type', 'NOTIFY',
                    'state', CASE n % 6 WHEN 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
                    'attempts', json_build_array(json_build_object('number', 1, 'startedAt', at,
                        'endedAt', at, 'error', NULL)),
                    'input', json_build_object('score', n % 100), 'output', NULL))
     FROM (SELECT n, now() - ($3 - n) * interval '1 second' AS at
           FROM generate_series(1, $3) AS n) AS times";

const DELIVERIES: &str = "INSERT INTO deliveries (org_id, delivery_id, webhook_id, event_id,
         event_sequence, event_type, status, next_attempt_at, attempts, created_at, changed_at)
     SELECT $1, 'msg_' || md5(n::text), $2, md5(n::text)::uuid, n,
            CASE n % 6 WHEN 0 THEN 'run.failed' ELSE 'run.succeeded' END,
            CASE n % 6 WHEN 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, NULL,
            jsonb_build_array(jsonb_build_object('at', at, 'durationMs', 12, 'error', NULL,
                'status', CASE n % 6 WHEN 0 THEN 410 ELSE 200 END, 'response', 'ok')),
            at, at
     FROM (SELECT n, now() - ($3 - n) * interval '1 second' AS at
           FROM generate_series(1, $3) AS n) AS times";

const RUNS_TOTALS: &str = "INSERT INTO totals
     SELECT org_id, 'runs', workflow_id, state, count(*) FROM runs
     GROUP BY org_id, workflow_id, state";
const DELIVERIES_TOTALS: &str = "INSERT INTO totals
     SELECT org_id, 'deliveries', webhook_id, status, count(*) FROM deliveries
     GROUP BY org_id, webhook_id, status";

/// Measures pages of a workflow's runs, of which `succeeded` succeeded and a fifth as many failed,
/// and of as many deliveries.
pub(super) async fn measure(succeeded: usize, sample: Sample, report: &mut Report) {
    let system = System::start(&[]).await;
    let rows = succeeded / 5 * 6;
    let (org, key) = system.organization().await;
    let started = Instant::now();
    fill(&system, &org, rows).await;
    report.count("runs and deliveries filled in", 2 * rows, started.elapsed());
    system.tidy_database().await;
    let queries = system.run("query-api");
    let reader = Reader::ready(&system, queries.addr, &org, &key).await;
    let runs = format!("/api/v1/workflows/{WORKFLOW}/runs");
    let [all, of_state] = List::whole_and_part("runs", &runs, ("state", STATE), rows);
    let deliveries = format!("/api/v1/webhooks/{WEBHOOK}/deliveries");
    let [sent, of_type] = List::whole_and_part("deliveries", &deliveries, ("q", TYPE), rows);
    // Matches two types, each of which is a list of its own.
    let of_types = List {
        of: "deliveries",
        path: deliveries,
        filter: Some(("q", "run.")),
        status: None,
        rows,
    };
    for list in [all, of_state, sent, of_type, of_types] {
        reader.compare(&list, (50, ""), sample, report).await;
    }
}

/// Writes `rows` rows of each, and their totals.
async fn fill(system: &System, org: &str, rows: usize) {
    let rows = i64::try_from(rows).expect("not that many");
    let mut database = PgConnection::connect(system.servers.database_url())
        .await
        .expect("Postgres");
    let endpoint = sqlx::query(ENDPOINT).bind(org).bind(WEBHOOK);
    endpoint.execute(&mut database).await.expect("an endpoint");
    for (kind, parent, listed, totals) in [
        ("runs", WORKFLOW, RUNS, RUNS_TOTALS),
        ("deliveries", WEBHOOK, DELIVERIES, DELIVERIES_TOTALS),
    ] {
        let listed = sqlx::query(listed).bind(org).bind(parent).bind(rows);
        listed.execute(&mut database).await.expect("rows");
        let totals = sqlx::query(totals).execute(&mut database).await;
        totals.expect("totals");
        let blocks = sqlx::query("SELECT count_list_blocks($1)").bind(kind);
        blocks.execute(&mut database).await.expect("blocks");
    }
}
