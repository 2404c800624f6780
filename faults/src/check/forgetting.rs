//! Persons whose deletion was acknowledged: none of their data can be read anywhere.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use schemas::Log;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::sleep;

use super::strangers::whole_feed;
use super::{Evidence, Fact, Findings};
use crate::load::forgetting::MARK;
use crate::notes::{Forgotten, Outcome};
use hostile::Dice;

const LOG: &str = "forgotten persons of whom no event can be read";
const TABLES: &str = "forgotten persons of whom no table holds anything";
const RUNS: &str = "runs forgotten with a person of which nothing else is left";
const FEEDS: &str = "feeds that show nothing of forgotten persons";
const SIGNED_OUT: &str = "tokens that ended with who was forgotten";

pub(super) async fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for check in [LOG, RUNS, TABLES, FEEDS, SIGNED_OUT] {
        findings.begin(check);
    }
    let forgotten = evidence.client.notes.all_forgotten();
    log(evidence, &forgotten, findings);
    runs(evidence, findings).await;
    let tables = in_tables(evidence.database).await;
    let tables = tables.map_err(|error| error.to_string());
    for one in &forgotten {
        let left = tables.as_ref().map(|tables| left_of(one, tables));
        let right = matches!(left, Ok(None));
        findings.judge(TABLES, right, &one.mark, "nothing", format!("{left:?}"));
    }
    feeds(evidence, &forgotten, findings).await;
    let mut dice = Dice::new(0);
    for one in &forgotten {
        let path = "/location/latest";
        let answer = evidence.client.read(&mut dice, &one.token, path, None);
        let status = answer.await.map(|answer| answer.status);
        let found = format!("{status:?}");
        findings.judge(SIGNED_OUT, status == Some(401), one.id, 401, found);
    }
}

/// Their sealed data cannot be opened any more, and their positions are gone.
fn log(evidence: &Evidence<'_>, forgotten: &[Forgotten], findings: &mut Findings) {
    let marked = evidence
        .facts
        .all
        .iter()
        .map(|fact| (fact, fact.data.to_string()));
    let marked: Vec<_> = marked.filter(|(_, data)| data.contains(MARK)).collect();
    let positions = evidence.facts.of(Log::Locations);
    let positions: BTreeSet<_> = positions.filter_map(Fact::person).collect();
    for one in forgotten {
        let left = marked.iter().find(|(_, data)| data.contains(&one.mark));
        let left = left.map(|(fact, _)| fact.place());
        let left = left.or_else(|| positions.contains(&one.id).then(|| "positions".to_owned()));
        findings.judge(
            LOG,
            left.is_none(),
            &one.mark,
            "nothing",
            left.unwrap_or_default(),
        );
    }
}

/// What a deletion erased of runs is erased once it is acknowledged.
async fn runs(evidence: &Evidence<'_>, findings: &mut Findings) {
    let notes = evidence.client.notes.commands();
    let deletions = notes.iter().filter(|note| {
        note.command == "forget" && matches!(note.outcome, Outcome::Acknowledged { .. })
    });
    let deletions: HashSet<u128> = deletions.map(|note| note.trace).collect();
    let acknowledged = |fact: &&Fact| fact.trace.is_some_and(|trace| deletions.contains(&trace));
    let runs = evidence.facts.of(Log::Events);
    let runs = runs.filter(|fact| fact.kind == "run.forgotten");
    for run in runs.filter(acknowledged) {
        let mut left = evidence.facts.count_left(run).await;
        // A copy may still be catching up.
        for _ in 0..20 {
            if matches!(left, Ok(1)) {
                break;
            }
            sleep(Duration::from_millis(500)).await;
            left = evidence.facts.count_left(run).await;
        }
        let right = matches!(left, Ok(1));
        findings.judge(RUNS, right, run.place(), "one event", format!("{left:?}"));
    }
}

/// The rows of all tables that hold any data of the forgotten persons.
async fn in_tables(database: &str) -> Result<Vec<String>, sqlx::Error> {
    let mut database = PgConnection::connect(database).await?;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
         WHERE table_type = 'BASE TABLE'
           AND table_schema NOT IN ('pg_catalog', 'information_schema')",
    )
    .fetch_all(&mut database)
    .await?;
    let mut found = Vec::new();
    for table in tables {
        let rows =
            format!("SELECT '{table} ' || t::text FROM {table} AS t WHERE strpos(t::text, $1) > 0");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows))
            .bind(MARK)
            .fetch_all(&mut database)
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

fn left_of<'t>(one: &Forgotten, texts: &'t [String]) -> Option<&'t String> {
    texts.iter().find(|text| text.contains(&one.mark))
}

async fn feeds(evidence: &Evidence<'_>, forgotten: &[Forgotten], findings: &mut Findings) {
    for org in &evidence.world.orgs {
        for path in ["/api/v1/events", "/api/v1/locations"] {
            let what = format!("{path} of {}", org.id);
            let Some(lines) = whole_feed(evidence, &org.key, path).await else {
                findings.judge(FEEDS, false, what, "a feed", "none");
                continue;
            };
            let lines = lines.iter().map(ToString::to_string);
            let lines: Vec<_> = lines.filter(|line| line.contains(MARK)).collect();
            let left = forgotten.iter().find_map(|one| left_of(one, &lines));
            findings.judge(FEEDS, left.is_none(), what, "nothing", format!("{left:?}"));
        }
    }
}
