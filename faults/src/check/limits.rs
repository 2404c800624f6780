//! Limits: never more than the limit in any window.

use std::time::{Duration, Instant};

use super::{Evidence, Findings};
use crate::notes::Admitted;

const LIMITS: &str = "windows that held no more than their limit";
/// How long processes may continue to count alone once Postgres is back.
const ALONE: Duration = Duration::from_secs(3);

/// The window in the run's settings.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    findings.begin(LIMITS);
    for (who, limited) in evidence.client.notes.limits() {
        let mut admitted = limited.admitted;
        admitted.sort_by_key(|one| one.sent);
        for (nth, first) in admitted.iter().enumerate() {
            let within = within(&admitted[nth..], first.sent);
            let last = within
                .iter()
                .map(|one| one.answered)
                .max()
                .unwrap_or(first.answered);
            if counted_alone(evidence, first.sent, last) {
                continue;
            }
            let count: u64 = within.iter().map(|one| one.cost).sum();
            let right = count <= limited.limit;
            findings.judge(
                LIMITS,
                right,
                &who,
                format!("at most {}", limited.limit),
                count,
            );
        }
    }
}

/// Requests sent and answered within the window from then on, which therefore counted in it at some
/// moment.
fn within(admitted: &[Admitted], from: Instant) -> Vec<Admitted> {
    let end = from + WINDOW;
    admitted
        .iter()
        .filter(|one| one.answered < end)
        .copied()
        .collect()
}

/// While Postgres is unavailable, each process continues with the counts that it saw last.
fn counted_alone(evidence: &Evidence<'_>, from: Instant, to: Instant) -> bool {
    let alone = evidence.done.counted_alone.iter();
    let mut alone = alone.map(|(began, ended)| (*began, *ended + ALONE));
    alone.any(|(began, ended)| from < ended && to > began)
}
