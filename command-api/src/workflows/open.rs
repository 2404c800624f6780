//! Whether an organization may have one more run open.
//!
//! Open runs are counted by the read models. No trigger waits for that: a count is requested
//! alongside a trigger and applies to the next ones. If none is available, triggers are accepted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemas::OrgId;
use sqlx::PgPool;

/// How long a count is used before another one is requested.
const FRESH: Duration = Duration::from_secs(1);
/// How long it is used at all.
const USABLE: Duration = Duration::from_secs(15);
/// With fewer counts than this, none is dropped.
const FIRST_SWEEP: usize = 1_024;

/// An organization has as many runs open as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "your organization has {0} open runs, the most it may have; let some end, or cancel some, and \
     try again"
)]
pub(crate) struct TooManyOpen(u32);

/// Open runs by organization. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct OpenRuns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: u32,
    models: PgPool,
    counts: Mutex<Counts>,
}

/// The counts that may still be used, and at most as many old ones.
#[derive(Debug)]
struct Counts {
    by_org: HashMap<OrgId, Count>,
    /// With this many, old ones are dropped.
    sweep_at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// The count of the read models, with its time.
    counted: Option<(u64, Instant)>,
    /// Triggers taken since.
    taken: u64,
    asking: bool,
}

impl OpenRuns {
    /// Allows at most `most` open runs of an organization.
    pub(crate) fn at_most(most: u32, models: PgPool) -> Self {
        Self(Arc::new(Inner {
            most,
            models,
            counts: Mutex::default(),
        }))
    }

    /// Takes one more run of an organization, unless it has too many.
    pub(crate) fn admit(&self, org: &OrgId) -> Result<(), TooManyOpen> {
        let mut counts = self.0.counts();
        let count = counts.of(org);
        if count.within(FRESH).is_none() && !count.asking {
            count.asking = true;
            let (open_runs, org) = (self.clone(), org.clone());
            tokio::spawn(async move { open_runs.ask(org).await });
        }
        let most = self.0.most;
        let open = count.within(USABLE);
        if open.is_some_and(|open| open.saturating_add(count.taken) >= most.into()) {
            metrics::counter!("waypost_triggers_refused_total", "reason" => "open_runs")
                .increment(1);
            return Err(TooManyOpen(most));
        }
        count.taken += 1;
        Ok(())
    }

    async fn ask(self, org: OrgId) {
        let asked = sqlx::query_scalar!(
            r#"SELECT coalesce(sum(count), 0)::bigint AS "open!" FROM totals
               WHERE org_id = $1 AND kind = 'runs' AND state IN ('QUEUED', 'RUNNING', 'WAITING')"#,
            org.as_str(),
        );
        let open = asked.fetch_one(&self.0.models).await;
        let open = open.map(|open| u64::try_from(open).unwrap_or(0));
        if let Err(error) = &open {
            tracing::debug!(%error, "Open runs cannot be counted");
        }
        let mut counts = self.0.counts();
        let count = counts.of(&org);
        count.asking = false;
        if let Ok(open) = open {
            count.counted = Some((open, Instant::now()));
            count.taken = 0;
        }
    }
}

impl Inner {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            by_org: HashMap::new(),
            sweep_at: FIRST_SWEEP,
        }
    }
}

impl Counts {
    /// An organization's count. Each sweep is paid for by as many organizations that came since the
    /// last one, however many there are.
    fn of(&mut self, org: &OrgId) -> &mut Count {
        if self.by_org.len() >= self.sweep_at {
            self.by_org
                .retain(|_, count| count.asking || count.within(USABLE).is_some());
            self.sweep_at = (self.by_org.len() * 2).max(FIRST_SWEEP);
        }
        self.by_org.entry(org.clone()).or_default()
    }
}

impl Count {
    /// The count, unless it is older than `time`.
    fn within(&self, time: Duration) -> Option<u64> {
        let (open, at) = self.counted?;
        (at.elapsed() < time).then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(counts: &mut Counts, orgs: std::ops::Range<usize>, asking: bool) {
        for org in orgs {
            counts.of(&OrgId::from(format!("org-{org}"))).asking = asking;
        }
    }

    #[test]
    fn counts_that_are_too_old_make_room() {
        let mut counts = Counts::default();
        fill(&mut counts, 0..10 * FIRST_SWEEP, false);
        assert!(counts.by_org.len() <= FIRST_SWEEP);
    }

    #[test]
    fn the_more_counts_are_in_use_the_more_come_before_the_next_sweep() {
        let mut counts = Counts::default();
        fill(&mut counts, 0..10 * FIRST_SWEEP, true);
        assert_eq!(counts.by_org.len(), 10 * FIRST_SWEEP);
        assert_eq!(counts.sweep_at, 16 * FIRST_SWEEP);
    }
}
