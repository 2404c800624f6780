//! Carries checks to Postgres and decisions back.

use std::sync::Arc;

use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::counter::Verdict;
use super::gather::{Flush, Group, Waiting, gather};
use super::outage::Outage;
use super::postgres::{Away, Server, admit};
use super::use_of::CounterSnapshot;

/// Checks taken at once.
const MAX_CHECKS: usize = 8_192;

/// Flushes waiting checks until no one can ask any more. One flush at a time: the next one gathers
/// meanwhile, and a second in flight was measured to cost more than it saves.
pub(super) async fn run(mut queue: mpsc::Receiver<Waiting>, server: Server, outage: Arc<Outage>) {
    let mut connection = None;
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, MAX_CHECKS).await > 0 {
        // Requests come in bursts: those about to ask can still join.
        tokio::task::yield_now().await;
        while waiting.len() < MAX_CHECKS
            && let Ok(check) = queue.try_recv()
        {
            waiting.push(check);
        }
        while let Some(flush) = gather(&mut waiting, Instant::now()) {
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
    if flush.groups.is_empty() {
        return;
    }
    // Checks that waited while the outage was detected need not detect it again.
    let verdicts = if outage.is_on() {
        Vec::new()
    } else {
        let decided = decide(&flush, connection, server).await;
        decided.unwrap_or_else(|away| {
            outage.begin(&away);
            Vec::new()
        })
    };
    metrics::histogram!("waypost_limit_flush_duration_seconds").record(flush.asked.elapsed());

    let mut by_place: Vec<Option<Verdict>> = flush.groups.iter().map(|_| None).collect();
    for (place, verdict) in verdicts {
        outage.see_time(verdict.snapshot.decided);
        if let Some(place) = by_place.get_mut(place) {
            *place = Some(verdict);
        }
    }
    for (group, verdict) in flush.groups.into_iter().zip(by_place) {
        match verdict {
            Some(verdict) => answer(group, flush.cost, &verdict, flush.asked, outage),
            None => answer_alone(group, flush.cost, outage),
        }
    }
}

/// Asks Postgres, once more on a new connection if the kept one turns out to be dead.
async fn decide(
    flush: &Flush,
    connection: &mut Option<PgConnection>,
    server: &Server,
) -> Result<Vec<(usize, Verdict)>, Away> {
    let kept = connection.is_some();
    let ask = async |connection: &mut PgConnection| admit(connection, flush).await;
    match server.ask(connection, ask).await {
        Err(away) if kept && away.is_broken_connection() => server.ask(connection, ask).await,
        answer => answer,
    }
}

/// Answers the checks of a group in order, as if each had been decided separately.
fn answer(group: Group, cost: u64, verdict: &Verdict, asked: Instant, outage: &Outage) {
    let Group {
        counter,
        quota,
        answers,
        ahead,
    } = group;
    let checks = (answers.len() as u64, ahead);
    if counter.see(verdict, checks, (quota, cost), asked) {
        outage.settle_later(&counter);
    }
    for (nth, answer) in (1..).zip(answers) {
        let admitted = nth <= verdict.admitted;
        let still_to_come = verdict.admitted.saturating_sub(nth);
        let snapshot = CounterSnapshot {
            used: verdict.snapshot.used - still_to_come * cost,
            retry_at: verdict.snapshot.retry_at.filter(|_| !admitted),
            ..verdict.snapshot
        };
        // A caller that has gone away is still counted: it asked.
        let _ = answer.send(counter.decision(quota, &snapshot));
    }
}

fn answer_alone(group: Group, cost: u64, outage: &Outage) {
    for answer in group.answers {
        let _ = answer.send(outage.decide(&group.counter, group.quota, cost));
    }
}
