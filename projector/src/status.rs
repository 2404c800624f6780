//! What a feed reports of itself: readiness, metrics and log lines.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{counter, gauge, histogram};
use schemas::Log;

use crate::batch::Group;
use crate::checkpoint::log_name;
use crate::error::{FeedError, WriteError};

/// Ends of the log kept to compute the age of the oldest event that has not been applied.
const ENDS: usize = 3_600;

/// Metrics of each projection that only the active projector reports.
const OF_ACTIVE: [&str; 4] = [
    "waypost_projection_lag_events",
    "waypost_projection_lag_seconds",
    "waypost_projection_parked_aggregates",
    "waypost_projection_skipped_events",
];

/// The state of one log's projector; clones share it.
#[derive(Clone)]
pub(crate) struct Status {
    log: Log,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    state: State,
    positions: BTreeMap<&'static str, u64>,
    /// Aggregates of each projection whose events wait.
    parked: BTreeMap<&'static str, usize>,
    /// The ends of the log and their times, oldest first.
    ends: VecDeque<(Instant, u64)>,
}

enum State {
    Starting,
    StandingBy,
    Active,
    Failing { reason: String, grave: bool },
}

impl Status {
    pub(crate) fn new(log: Log) -> Self {
        // To monitoring, a counter that first appears with its first fault has not risen.
        for name in [
            "waypost_projector_gaps_total",
            "waypost_projector_faults_total",
        ] {
            counter!(name, "log" => log_name(log)).absolute(0);
        }
        Self {
            log,
            shared: Arc::new(Mutex::new(Shared {
                state: State::Starting,
                positions: BTreeMap::new(),
                parked: BTreeMap::new(),
                ends: VecDeque::new(),
            })),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the feed works or stands by, or why it does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.shared().state {
            State::Starting => Err(format!("{}: starting", log_name(self.log))),
            State::Failing { reason, .. } => Err(format!("{}: {reason}", log_name(self.log))),
            State::StandingBy | State::Active => Ok(()),
        }
    }

    /// Whether every event could be applied, or which projections have put some aside.
    pub(crate) fn check_parked(&self) -> Result<(), String> {
        let shared = self.shared();
        let parked: Vec<_> = shared
            .parked
            .iter()
            .filter(|(_, count)| **count > 0)
            .collect();
        if parked.is_empty() {
            return Ok(());
        }
        let told = parked.into_iter().map(|(projection, count)| {
            format!("{projection}: {count} waiting behind a dead letter")
        });
        Err(told.collect::<Vec<_>>().join("; "))
    }

    pub(crate) fn report_standby(&self) {
        let mut shared = self.shared();
        if !matches!(shared.state, State::StandingBy) {
            tracing::info!(log = log_name(self.log), "This projector is on standby");
            shared.state = State::StandingBy;
        }
        for (projection, _) in std::mem::take(&mut shared.positions) {
            for name in OF_ACTIVE {
                gauge!(name, "projection" => projection).set(0.0);
            }
        }
        shared.parked.clear();
        gauge!("waypost_projector_active", "log" => log_name(self.log)).set(0.0);
    }

    /// The log and the database are available. A gap in the log shows only further on.
    pub(crate) fn connected(&self) {
        self.recover(false);
        gauge!("waypost_projector_active", "log" => log_name(self.log)).set(1.0);
    }

    fn recover(&self, from_grave: bool) {
        let mut shared = self.shared();
        match &shared.state {
            State::Active => return,
            State::Failing { grave: true, .. } if !from_grave => return,
            State::Failing { .. } => {
                tracing::info!(log = log_name(self.log), "The projector is working again");
            }
            State::Starting | State::StandingBy => {}
        }
        shared.state = State::Active;
    }

    pub(crate) fn failed(&self, error: &FeedError) {
        if matches!(error, FeedError::Write(WriteError::Overtaken)) {
            // A change by a rebuild, an operator or another projector is no fault: all that is held
            // in memory is reloaded.
            tracing::info!(
                log = log_name(self.log),
                "Rows were changed by another process; reading again"
            );
            return;
        }
        if let FeedError::Hole(_) = error {
            counter!("waypost_projector_gaps_total", "log" => log_name(self.log)).increment(1);
        }
        let reason = error.to_string();
        let mut shared = self.shared();
        let known = matches!(&shared.state, State::Failing { reason: r, .. } if *r == reason);
        if !known {
            let (log, cause) = (log_name(self.log), error.source().map(ToString::to_string));
            if error.is_grave() {
                counter!("waypost_projector_faults_total", "log" => log).increment(1);
                tracing::error!(log, reason, cause, "The projector cannot continue");
            } else {
                tracing::warn!(log, reason, cause, "The projector is retrying");
            }
        }
        shared.state = State::Failing {
            reason,
            grave: error.is_grave(),
        };
    }

    /// Reports that a group has moved on.
    pub(crate) fn wrote(&self, group: &Group, events: usize, took: Duration) {
        self.recover(true);
        let log = log_name(self.log);
        counter!("waypost_projector_events_total", "log" => log).increment(events as u64);
        histogram!("waypost_projector_batch_events", "log" => log)
            .record(u32::try_from(events).unwrap_or(u32::MAX));
        histogram!("waypost_projector_batch_duration_seconds", "log" => log)
            .record(took.as_secs_f64());
        self.report_position(group);
    }

    /// Reports a group's position.
    pub(crate) fn report_position(&self, group: &Group) {
        let mut shared = self.shared();
        for member in &group.members {
            let projection = member.projection.name();
            shared.positions.insert(projection, group.position);
            shared.parked.insert(projection, member.parked.len());
            gauge!("waypost_projection_parked_aggregates", "projection" => projection)
                .set(as_gauge(member.parked.len() as u64));
            gauge!("waypost_projection_skipped_events", "projection" => projection)
                .set(as_gauge(member.skipped.len() as u64));
        }
    }

    /// Reports the lag of each projection, as the log now ends at `end`.
    pub(crate) fn log_ends_at(&self, end: u64) {
        let now = Instant::now();
        let mut shared = self.shared();
        shared.ends.push_back((now, end));
        let slowest = shared.positions.values().min().copied().unwrap_or(end);
        while shared.ends.len() > ENDS || shared.ends.front().is_some_and(|e| e.1 <= slowest) {
            shared.ends.pop_front();
        }
        for (projection, position) in &shared.positions {
            let passed = shared.ends.partition_point(|(_, end)| end <= position);
            let waiting_since = shared.ends.get(passed).map(|(at, _)| *at);
            let seconds = waiting_since.map_or(0.0, |at| (now - at).as_secs_f64());
            gauge!("waypost_projection_lag_events", "projection" => *projection)
                .set(as_gauge(end.saturating_sub(*position)));
            gauge!("waypost_projection_lag_seconds", "projection" => *projection).set(seconds);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is read by people")]
pub(crate) fn as_gauge(value: u64) -> f64 {
    value as f64
}
