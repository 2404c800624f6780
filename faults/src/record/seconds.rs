//! What clients saw in each second.

use std::time::Instant;

use crate::notes::{Attempt, Came};

/// Attempts that were sent in one second, by outcome, and how long they took.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Second {
    pub(super) nth: usize,
    pub(super) acknowledged: usize,
    pub(super) refused: usize,
    pub(super) unknown: usize,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Every second from the beginning to the last attempt.
pub(super) fn seconds(began: Instant, attempts: &[Attempt]) -> Vec<Second> {
    let mut sent_in: Vec<Vec<&Attempt>> = Vec::new();
    for attempt in attempts {
        let since = attempt.sent.saturating_duration_since(began).as_secs();
        let nth = usize::try_from(since).unwrap_or_default();
        if sent_in.len() <= nth {
            sent_in.resize_with(nth + 1, Vec::new);
        }
        sent_in[nth].push(attempt);
    }
    let one = |(nth, sent): (usize, &Vec<&Attempt>)| {
        let mut took: Vec<_> = sent.iter().map(|one| one.took.as_secs_f64()).collect();
        took.sort_by(f64::total_cmp);
        let of = |came| sent.iter().filter(|one| one.came == came).count();
        Second {
            nth,
            acknowledged: of(Came::Acknowledged),
            refused: of(Came::Refused),
            unknown: of(Came::Unknown),
            p50_ms: percentile(&took, 50) * 1_000.0,
            p99_ms: percentile(&took, 99) * 1_000.0,
        }
    };
    sent_in.iter().enumerate().map(one).collect()
}

/// The nearest-rank percentile of sorted numbers; 0 if there are none.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let nth = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(nth.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn attempts_count_in_the_second_in_which_they_were_sent() {
        let began = Instant::now();
        let attempt = |sent_ms, took_ms, came| Attempt {
            sent: began + Duration::from_millis(sent_ms),
            took: Duration::from_millis(took_ms),
            came,
        };
        let seconds = seconds(
            began,
            &[
                attempt(2_100, 30, Came::Unknown),
                attempt(100, 10, Came::Acknowledged),
                attempt(900, 4_000, Came::Acknowledged),
                attempt(200, 20, Came::Refused),
            ],
        );
        let counts: Vec<_> = seconds
            .iter()
            .map(|one| (one.acknowledged, one.refused, one.unknown))
            .collect();
        assert_eq!(counts, [(2, 1, 0), (0, 0, 0), (0, 0, 1)]);
        assert!((seconds[0].p50_ms - 20.0).abs() < 0.001);
        assert!((seconds[0].p99_ms - 4_000.0).abs() < 0.001);
    }
}
