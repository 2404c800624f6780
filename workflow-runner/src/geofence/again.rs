//! Considers positions again that were deferred, a round at a time for each organization.

use std::sync::Arc;
use std::time::Duration;

use event_log::{EventLog, ReadError};
use futures::future::join_all;
use schemas::{AccountId, Log, OrgId};
use tokio::time::sleep;

use super::crossings::Crossings;
use super::deferred::{Again, Round};
use super::in_order::{At, Consider as _};
use crate::leases::Leases;
use crate::retry::retry_while;

/// Rounds in progress at the same time.
pub(super) const ROUNDS: usize = 8;
/// The pause after a round in which the log did not take everything.
const PAUSE: Duration = Duration::from_millis(100);

/// What a round needs.
pub(super) struct Rounds {
    pub(super) log: EventLog,
    pub(super) crossings: Arc<Crossings>,
    pub(super) leases: Leases,
}

/// The outcome of a round.
pub(super) struct Ended {
    pub(super) org: OrgId,
    /// The last position of each person that was considered.
    pub(super) considered: Vec<(AccountId, u64)>,
}

impl Rounds {
    /// Considers the positions of a round, those of different persons concurrently.
    pub(super) async fn carry_out(self, round: Round) -> Ended {
        // Somebody may have left or hidden meanwhile.
        self.crossings.settle().await;
        let Round { org, persons } = round;
        let again = persons.iter().map(|person| self.consider(&org, person));
        let considered: Vec<Option<(AccountId, u64)>> = join_all(again).await;
        let all = persons.iter().map(|person| person.positions.last());
        let is_done = |(done, last): (&Option<(AccountId, u64)>, Option<&u64>)| {
            done.as_ref().map(|(_, through)| through) == last
        };
        if !considered.iter().zip(all).all(is_done) {
            sleep(PAUSE).await;
        }
        let considered = considered.into_iter().flatten().collect();
        Ended { org, considered }
    }

    /// Considers a person's positions as far as the log takes what they show.
    async fn consider(&self, org: &OrgId, person: &Again) -> Option<(AccountId, u64)> {
        let guard = self.leases.guard(person.partition)?;
        let mut through = None;
        for sequence in &person.positions {
            let read = || self.log.get(Log::Locations, *sequence);
            match retry_while(read, ReadError::passes).await {
                Ok(Some(recorded)) => {
                    let away = self.crossings.consider(&recorded, At::Only(org)).await;
                    if !away.is_empty() {
                        break;
                    }
                }
                // It has expired, or its person was forgotten.
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "A position cannot be read"),
            }
            through = Some(*sequence);
        }
        let through = through.filter(|_| guard.is_valid())?;
        Some((person.account, through))
    }
}
