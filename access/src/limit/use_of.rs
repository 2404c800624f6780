//! What one process knows of a counter's use; pure, with time passed in.
//!
//! Times are the database's, in seconds since 1970; `f64` holds them to the microsecond.

/// The most whole seconds that are prepaid, and the largest share of a rolling window: its uses may
/// count longer than they must by that much.
const AHEAD: u64 = 3;
const SHARE_AHEAD: u64 = 1_000;

/// A counter's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Window {
    pub(super) span: u64,
    /// Whether it starts at whole multiples of its span; otherwise it rolls.
    pub(super) fixed: bool,
}

impl Window {
    /// The second from which what was counted in `second` no longer counts.
    pub(super) fn frees(self, second: u64) -> u64 {
        if self.fixed {
            second - second % self.span + self.span
        } else {
            second + self.span + 1
        }
    }

    /// For how many whole seconds after the current one checks may be prepaid.
    pub(super) fn ahead(self) -> u64 {
        if self.fixed {
            0
        } else {
            AHEAD.min(self.span / SHARE_AHEAD)
        }
    }

    /// Seconds that are merged into one while this process counts alone, so that an outage of any
    /// length takes bounded memory.
    fn grain(self) -> u64 {
        (self.span / 60).max(1)
    }
}

/// The state of a counter after a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CounterSnapshot {
    /// The use that counts.
    pub(super) used: u64,
    /// When it starts to shrink.
    pub(super) eases_at: u64,
    /// Of a refusal: when the check would be admitted.
    pub(super) retry_at: Option<u64>,
    /// When this was decided.
    pub(super) decided: f64,
}

#[cfg(test)]
impl CounterSnapshot {
    /// An admission.
    pub(super) fn of(used: u64, decided: f64) -> Self {
        Self {
            used,
            eases_at: 0,
            retry_at: None,
            decided,
        }
    }
}

/// Use that has not been written to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) second: u64,
    pub(super) used: u64,
}

/// A counter's use as last seen, and what was counted alone since.
#[derive(Debug, Default)]
pub(super) struct Use {
    seen: Option<CounterSnapshot>,
    late: Vec<Late>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds since 1970 are positive and fit"
)]
pub(super) fn second_of(time: f64) -> u64 {
    time as u64
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit 52 bits")]
fn is_past(second: u64, now: f64) -> bool {
    second as f64 <= now
}

impl Use {
    /// Records the state that the database returned.
    pub(super) fn see(&mut self, snapshot: CounterSnapshot) {
        self.seen = Some(snapshot);
    }

    /// The state of the counter when the database last decided, while any of it may still count.
    pub(super) fn seen(&self) -> Option<CounterSnapshot> {
        self.seen
    }

    /// Decides without the database: what was last seen counts until all of it must have ended,
    /// since this process does not know in which second it was used.
    pub(super) fn decide_alone(
        &mut self,
        window: Window,
        now: f64,
        quota: u64,
        cost: u64,
    ) -> CounterSnapshot {
        self.late
            .retain(|late| !is_past(window.frees(late.second), now));
        // Some of it may have been prepaid.
        let seen_ends =
            |seen: &CounterSnapshot| window.frees(second_of(seen.decided) + window.ahead());
        self.seen = self.seen.filter(|seen| !is_past(seen_ends(seen), now));

        let seen_used = self.seen.map_or(0, |seen| seen.used);
        let used = seen_used + self.late_use();
        let admitted = used + cost <= quota;
        if admitted {
            self.add_late(window, second_of(now), cost);
        }
        let seen_end = self
            .seen
            .as_ref()
            .filter(|seen| seen.used > 0)
            .map(seen_ends);
        let mut ends: Vec<(u64, u64)> = seen_end.map(|end| (end, seen_used)).into_iter().collect();
        ends.extend(
            self.late
                .iter()
                .map(|late| (window.frees(late.second), late.used)),
        );
        ends.sort_unstable();
        CounterSnapshot {
            used: if admitted { used + cost } else { used },
            eases_at: ends.first().map_or(second_of(now), |(end, _)| *end),
            retry_at: (!admitted).then(|| first_fit(&ends, used + cost - quota, now)),
            decided: now,
        }
    }

    /// Use that has to be written.
    pub(super) fn late(&self) -> &[Late] {
        &self.late
    }

    /// Removes what has been written; it counts as seen from now on.
    pub(super) fn wrote(&mut self, written: Late, now: f64) {
        let mut left = written.used;
        // Its entry may have grown meanwhile, and moved to a later second with it.
        for late in &mut self.late {
            let taken = late.used.min(left);
            late.used -= taken;
            left -= taken;
        }
        self.late.retain(|late| late.used > 0);
        let seen = self.seen.get_or_insert(CounterSnapshot {
            used: 0,
            eases_at: second_of(now),
            retry_at: None,
            decided: now,
        });
        seen.used += written.used;
        seen.decided = seen.decided.max(now);
    }

    fn late_use(&self) -> u64 {
        self.late.iter().map(|late| late.used).sum()
    }

    fn add_late(&mut self, window: Window, second: u64, used: u64) {
        let grain = window.grain();
        match self.late.last_mut() {
            // Uses that share an entry count until the last of them has ended.
            Some(last) if last.second / grain == second / grain => {
                last.used += used;
                last.second = last.second.max(second);
            }
            _ => self.late.push(Late { second, used }),
        }
    }
}

/// When enough has ended that `needed` more fit, or when all has.
fn first_fit(ends: &[(u64, u64)], needed: u64, now: f64) -> u64 {
    let mut freed = 0;
    let enough = ends.iter().find(|(_, used)| {
        freed += used;
        freed >= needed
    });
    let last = enough.or(ends.last());
    last.map_or(second_of(now) + 1, |(end, _)| *end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_800_000_000;

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn at(ms: u64) -> f64 {
        START as f64 + ms as f64 / 1_000.0
    }

    proptest! {
        /// Alone, never more than the quota in any window, the use last seen included; and the
        /// promised time is true.
        #[test]
        fn alone_the_quota_holds_and_retry_at_is_true(
            quota in 1..20_u64,
            span in 1..200_u64,
            fixed: bool,
            used in 0..20_u64,
            waits in prop::collection::vec(0..4_000_u64, 1..120),
        ) {
            let window = Window { span, fixed };
            let mut usage = Use::default();
            usage.see(CounterSnapshot::of(used, at(0)));
            let (mut now, mut admitted) = (0, vec![(0, used)]);
            for wait in waits {
                now += wait;
                let before = now;
                let mut snapshot = usage.decide_alone(window, at(now), quota, 1);
                if let Some(retry_at) = snapshot.retry_at {
                    now = now.max((retry_at - START) * 1_000);
                    snapshot = usage.decide_alone(window, at(now), quota, 1);
                    prop_assert!(snapshot.retry_at.is_none() || used >= quota, "{before} {snapshot:?}");
                }
                if snapshot.retry_at.is_none() {
                    admitted.push((now, 1));
                }
                let recent = admitted.iter().filter(|(time, _)| if fixed {
                    (START + time / 1_000) / span == (START + now / 1_000) / span
                } else {
                    now - time < span * 1_000
                });
                let recent: u64 = recent.map(|(_, used)| used).sum();
                prop_assert!(recent <= quota.max(used), "{recent} of {quota}");
            }
        }

        #[test]
        fn an_outage_of_any_length_takes_bounded_memory(
            waits in prop::collection::vec(0..20_000_u64, 1..400),
        ) {
            let window = Window { span: 600, fixed: false };
            let mut usage = Use::default();
            let mut now = 0;
            for wait in waits {
                now += wait;
                usage.decide_alone(window, at(now), 1_000_000, 1);
                prop_assert!(usage.late().len() <= 62, "{}", usage.late().len());
            }
        }
    }

    #[test]
    fn what_is_written_counts_once() {
        let window = Window {
            span: 60,
            fixed: false,
        };
        let mut usage = Use::default();
        usage.decide_alone(window, at(0), 10, 4);
        let late = usage.late().to_vec();
        usage.decide_alone(window, at(10), 10, 1);
        for late in late {
            usage.wrote(late, at(20));
        }
        assert_eq!(usage.late().iter().map(|late| late.used).sum::<u64>(), 1);
        let snapshot = usage.decide_alone(window, at(30), 10, 1);
        assert_eq!((snapshot.used, snapshot.retry_at), (6, None));
    }
}
