//! Limits the pace of bulk work that can wait, so that reads hardly feel it.
//!
//! A batch is one long statement, which occupies a processor of the database's machine for as long,
//! however low the priority of the client. So what helps is to send less: on a database that others
//! use, there is a rest after each batch.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep_until};

use crate::settings::{BATCH, SHARE};

/// The longest rest: a batch that took seconds had to wait for others itself.
const REST_MAX: Duration = Duration::from_secs(30);
/// From this number of transactions a second on, others use it. Idle services stay far below.
const IN_USE: f64 = 100.0;
/// How often the server's counts are read. They are up to a second old.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How fast bulk work on a projection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Most events applied in one transaction.
    pub batch: usize,
    /// While others use the database, the work takes this share of the time, in percent: 1 to 100.
    pub share: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            batch: BATCH,
            share: SHARE,
        }
    }
}

/// Rests between batches while others use the database.
#[derive(Debug)]
pub(crate) struct BulkThrottle {
    share: u32,
    in_use: bool,
    looked: Look,
    /// Our own transactions since the last look.
    own: i64,
}

/// The server's count of transactions at a time.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    transactions: i64,
}

impl BulkThrottle {
    /// Assumes that the database is in use until more is known.
    pub(crate) async fn begin(session: &mut PgConnection, pace: Pace) -> Result<Self, sqlx::Error> {
        Ok(Self::new(pace.share, look(session).await?))
    }

    fn new(share: u32, looked: Look) -> Self {
        Self {
            share,
            in_use: true,
            looked,
            // The look itself.
            own: 1,
        }
    }

    /// Rests, if that is due, after the given number of transactions that began at `began`.
    pub(crate) async fn rest(
        &mut self,
        session: &mut PgConnection,
        began: Instant,
        transactions: usize,
    ) -> Result<(), sqlx::Error> {
        self.own += i64::try_from(transactions).unwrap_or(i64::MAX);
        let until = Instant::now() + self.rest_after(began.elapsed());
        loop {
            let next_look = self.looked.at + LOOK_EVERY;
            if next_look <= Instant::now() {
                self.judge(look(session).await?);
            } else if self.in_use && Instant::now() < until {
                sleep_until(until.min(next_look)).await;
            } else {
                return Ok(());
            }
        }
    }

    fn rest_after(&self, took: Duration) -> Duration {
        let share = self.share.clamp(1, 100);
        (took * (100 - share) / share).min(REST_MAX)
    }

    fn judge(&mut self, now: Look) {
        let since = now.at.duration_since(self.looked.at).as_secs_f64();
        let others = now.transactions - self.looked.transactions - self.own;
        let others = f64::from(i32::try_from(others).unwrap_or(i32::MAX));
        *self = Self {
            in_use: others >= IN_USE * since,
            ..Self::new(self.share, now)
        };
    }
}

async fn look(session: &mut PgConnection) -> Result<Look, sqlx::Error> {
    let transactions = sqlx::query_scalar!(
        r#"SELECT xact_commit + xact_rollback AS "count!"
           FROM pg_stat_database WHERE datname = current_database()"#
    )
    .fetch_one(session)
    .await?;
    Ok(Look {
        at: Instant::now(),
        transactions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_make_it_slow_and_its_own_work_does_not() {
        let start = Instant::now();
        let at = |seconds, transactions| Look {
            at: start + Duration::from_secs(seconds),
            transactions,
        };
        let mut throttle = BulkThrottle::new(SHARE, at(0, 5_000));
        assert!(throttle.in_use, "nothing is known yet");
        throttle.own += 300;
        throttle.judge(at(1, 5_320));
        assert!(!throttle.in_use, "19 were others'");
        throttle.judge(at(3, 5_540));
        assert!(throttle.in_use, "219 in two seconds");
        throttle.judge(at(4, 5_560));
        assert!(!throttle.in_use);
    }

    #[test]
    fn it_rests_so_long_that_its_share_is_left() {
        let looked = Look {
            at: Instant::now(),
            transactions: 0,
        };
        let rest = |share, took| BulkThrottle::new(share, looked).rest_after(took);
        let second = Duration::from_secs(1);
        assert_eq!(rest(SHARE, second), second * 19);
        assert_eq!(rest(50, second), second);
        assert_eq!(rest(100, second), Duration::ZERO);
        assert_eq!(rest(1, second), REST_MAX);
    }
}
