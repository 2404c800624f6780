//! Waiting until nothing more happens, judged by the log and the read models.

use std::time::{Duration, Instant};

use schemas::Log;
use sqlx::{Connection as _, PgConnection};

use crate::check::{Facts, Fold, undelivered};
use crate::readers::Receiver;

/// What never drains is for the checker to find. The wait ends after this long without anything new
/// while something is still open, or after all of `LIMIT`.
const STUCK: Duration = Duration::from_mins(2);
const LIMIT: Duration = Duration::from_mins(20);
/// How long nothing new may arrive.
const STILL: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Reads on until every run has ended, due deliveries are made, the read models have reached the
/// log's end and nothing new has arrived for a while. Returns the fold, and what is still open.
pub(crate) async fn wait(
    facts: &mut Facts,
    receiver: &Receiver,
    database: &str,
) -> (Fold, Vec<String>) {
    let begun = Instant::now();
    let mut still_since = Instant::now();
    loop {
        if facts.advance().await {
            still_since = Instant::now();
        }
        let tried_enough = begun.elapsed() > LIMIT || still_since.elapsed() > STUCK;
        if still_since.elapsed() > STILL || tried_enough {
            let fold = Fold::of(facts);
            let open = open(facts, &fold, receiver, database).await;
            if open.is_empty() || tried_enough {
                return (fold, open);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn open(facts: &Facts, fold: &Fold, receiver: &Receiver, database: &str) -> Vec<String> {
    let mut open = Vec::new();
    if fold.open_runs() > 0 {
        open.push(format!("{} runs have not ended", fold.open_runs()));
    }
    let undelivered = undelivered(facts, &receiver.arrived(), receiver.base());
    if undelivered > 0 {
        open.push(format!(
            "{undelivered} deliveries that are due have not arrived"
        ));
    }
    match behind(facts, database).await {
        Ok(behind) => open.extend(behind),
        Err(error) => open.push(format!("the read models do not answer: {error}")),
    }
    open
}

/// Projections that have not reached their log's last event.
async fn behind(facts: &Facts, database: &str) -> Result<Vec<String>, String> {
    let mut ends = Vec::new();
    for (one, name) in [
        (Log::Events, "events"),
        (Log::Locations, "locations"),
        (Log::Deliveries, "deliveries"),
    ] {
        ends.push((name, i64::try_from(facts.end(one)).unwrap_or(i64::MAX)));
    }
    let failed = |error: sqlx::Error| error.to_string();
    let mut database = PgConnection::connect(database).await.map_err(failed)?;
    let query = "SELECT name, log, sequence FROM projection_checkpoints";
    let rows: Vec<(String, String, i64)> = sqlx::query_as(query)
        .fetch_all(&mut database)
        .await
        .map_err(failed)?;
    let is_behind = |(_, log, sequence): &&(String, String, i64)| {
        ends.iter().any(|(name, end)| name == log && sequence < end)
    };
    let behind = rows.iter().filter(is_behind);
    let told = |(name, _, sequence): &(String, String, i64)| {
        format!("the projection {name} is at {sequence}")
    };
    Ok(behind.map(told).collect())
}
