//! Large batches are written by several sessions in parallel, each with a share of the projections:
//! rows and position of each projection still change in one transaction.

use std::cmp::Reverse;
use std::iter::once;
use std::mem;

use event_log::{EventLog, Item};
use futures::future::join_all;
use schemas::Log;
use sqlx::PgConnection;

use crate::batch::Group;
use crate::connect::Connector;
use crate::error::WriteError;

/// Fewer events are written faster in one transaction than in several.
pub(crate) const LARGE: usize = 1_000;

/// The sessions that write for one group.
pub(crate) struct Writers {
    connector: Connector,
    log: Log,
    /// The maximum number of sessions.
    most: usize,
    first: PgConnection,
    /// Opened when a large batch needs them.
    others: Vec<PgConnection>,
}

impl Writers {
    pub(crate) async fn open(
        connector: &Connector,
        log: Log,
        most: usize,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self {
            connector: connector.clone(),
            log,
            most,
            first: connector.writer(log).await?,
            others: Vec::new(),
        })
    }

    /// The session for everything but large batches.
    pub(crate) fn first(&mut self) -> &mut PgConnection {
        &mut self.first
    }

    /// Writes a batch. If that fails, some projections of the group may have moved on and others
    /// not: their positions have to be reloaded.
    pub(crate) async fn write(
        &mut self,
        group: &mut Group,
        log: &EventLog,
        items: &[Item],
        to: u64,
    ) -> Result<(), WriteError> {
        if items.len() < LARGE {
            return group.write(&mut self.first, log, items, to).await;
        }
        let members = mem::take(&mut group.members).into_iter();
        let counted = members.map(|member| (member.count(items), member));
        let shares = deal(counted.collect(), self.most).into_iter();
        let mut shares: Vec<_> = shares.map(|members| group.with(members)).collect();
        let written = self.write_each(&mut shares, log, items, to).await;
        group.members = shares.into_iter().flat_map(|share| share.members).collect();
        written?;
        group.position = to;
        Ok(())
    }

    /// Waits for all, even if one fails, so that no session is left within a statement.
    async fn write_each(
        &mut self,
        shares: &mut [Group],
        log: &EventLog,
        items: &[Item],
        to: u64,
    ) -> Result<(), WriteError> {
        while self.others.len() + 1 < shares.len() {
            self.others.push(self.connector.writer(self.log).await?);
        }
        let sessions = once(&mut self.first).chain(&mut self.others);
        let writing = shares.iter_mut().zip(sessions);
        let written = writing.map(|(share, session)| share.write(session, log, items, to));
        join_all(written).await.into_iter().collect()
    }
}

/// Distributes weighted items over at most `most` shares of about the same weight: the heaviest
/// first, each to the share that is the lightest by then.
fn deal<T>(mut weighed: Vec<(usize, T)>, most: usize) -> Vec<Vec<T>> {
    let heavy = weighed.iter().filter(|(weight, _)| *weight > 0).count();
    let mut shares: Vec<_> = (0..heavy.min(most).max(1))
        .map(|_| (0, Vec::new()))
        .collect();
    weighed.sort_by_key(|(weight, _)| Reverse(*weight));
    for (weight, one) in weighed {
        if let Some((sum, share)) = shares.iter_mut().min_by_key(|(sum, _)| *sum) {
            *sum += weight;
            share.push(one);
        }
    }
    shares.into_iter().map(|(_, share)| share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_is_dealt_once_and_no_share_is_much_heavier_than_another(
            weights in prop::collection::vec(0_usize..5_000, 0..20),
            most in 0_usize..6,
        ) {
            let weighed = weights.iter().enumerate().map(|(index, weight)| (*weight, index));
            let shares = deal(weighed.collect(), most);
            prop_assert!(!shares.is_empty() && shares.len() <= most.max(1));
            let mut dealt: Vec<_> = shares.iter().flatten().copied().collect();
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (0..weights.len()).collect::<Vec<_>>());
            let weight_of = |share: &Vec<usize>| share.iter().map(|one| weights[*one]).sum();
            let sums: Vec<usize> = shares.iter().map(weight_of).collect();
            let least = sums.iter().copied().min().unwrap_or(0);
            let heaviest = sums.iter().copied().max().unwrap_or(0);
            prop_assert!(heaviest - least <= weights.iter().copied().max().unwrap_or(0));
            // A session without an event would be a transaction for nothing.
            prop_assert!(shares.len() == 1 || least > 0);
        }
    }
}
