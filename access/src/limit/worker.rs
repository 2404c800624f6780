//! Carries checks to Postgres and decisions back.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::gather::{Flush, Group, Waiting, gather};
use super::outage::Outage;
use super::postgres::{Away, Server, Verdict, admit};
use super::use_of::Standing;

/// Checks taken at once.
const MAX_CHECKS: usize = 8_192;
/// From so many checks in a flush on, the next one waits for company.
const CROWD: usize = 5;
/// How long it does. A statement costs as much as some twenty checks in it, and what is checked
/// waits for the log's batch under way in any case.
const GATHERING: Duration = Duration::from_millis(1);

/// Takes what waits and flushes it, until nobody can ask any more. One flush at a time: while it is
/// under way the next one gathers, and a second in flight was measured to cost more than it saves.
pub(super) async fn run(mut queue: mpsc::Receiver<Waiting>, server: Server, outage: Arc<Outage>) {
    let mut connection = None;
    let mut waiting = Vec::new();
    let mut last = 0;
    while queue.recv_many(&mut waiting, MAX_CHECKS).await > 0 {
        // Requests come in bursts: those that are about to ask can still come along.
        if last < CROWD {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(GATHERING).await;
        }
        while waiting.len() < MAX_CHECKS
            && let Ok(check) = queue.try_recv()
        {
            waiting.push(check);
        }
        last = waiting.len();
        while let Some(flush) = gather(&mut waiting) {
            carry(flush, &mut connection, &server, &outage).await;
        }
    }
}

async fn carry(
    flush: Flush,
    connection: &mut Option<PgConnection>,
    server: &Server,
    outage: &Outage,
) {
    let asked = Instant::now();
    // What waited while the outage was found out need not find it out again.
    let verdicts = if outage.is_on() {
        Vec::new()
    } else {
        let decided = decide(&flush, connection, server).await;
        decided.unwrap_or_else(|away| {
            outage.begin(&away);
            Vec::new()
        })
    };
    metrics::histogram!("waypost_limit_flush_duration_seconds").record(asked.elapsed());

    let Flush { cost, groups, .. } = flush;
    let mut by_place: Vec<Option<Verdict>> = groups.iter().map(|_| None).collect();
    for verdict in verdicts {
        outage.see_time(verdict.standing.decided);
        if let Some(place) = by_place.get_mut(verdict.place) {
            *place = Some(verdict);
        }
    }
    for (group, verdict) in groups.into_iter().zip(by_place) {
        match verdict {
            Some(verdict) => answer(group, cost, &verdict, asked),
            None => answer_alone(group, cost, outage),
        }
    }
}

/// Asks Postgres; where a kept connection turns out to be dead, once more on a new one.
async fn decide(
    flush: &Flush,
    connection: &mut Option<PgConnection>,
    server: &Server,
) -> Result<Vec<Verdict>, Away> {
    let kept = connection.is_some();
    let ask = async |connection: &mut PgConnection| admit(connection, flush).await;
    match server.ask(connection, ask).await {
        Err(away) if kept && away.is_broken_connection() => server.ask(connection, ask).await,
        answer => answer,
    }
}

/// Tells the checks of a group, the first ones first, as if each had been decided by itself.
fn answer(group: Group, cost: u64, verdict: &Verdict, asked: Instant) {
    let Group {
        counter,
        quota,
        answers,
    } = group;
    counter.see(verdict.standing, quota, cost, asked);
    for (nth, answer) in (1..).zip(answers) {
        let admitted = nth <= verdict.admitted;
        let still_to_come = verdict.admitted.saturating_sub(nth);
        let standing = Standing {
            used: verdict.standing.used - still_to_come * cost,
            retry_at: verdict.standing.retry_at.filter(|_| !admitted),
            ..verdict.standing
        };
        // Whoever went away meanwhile is counted all the same: it asked.
        let _ = answer.send(counter.decision(quota, &standing));
    }
}

fn answer_alone(group: Group, cost: u64, outage: &Outage) {
    for answer in group.answers {
        let _ = answer.send(outage.decide(&group.counter, group.quota, cost));
    }
}
