//! Commits on their way, by party.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::party::Party;
use crate::throttle::{Resource, Throttle};

/// With this many commits on their way, batches are cheaper than single publishes.
const BATCH_WORTH: usize = 20;
/// Commits of parties asking for little that go alone beside the batches of others, so that they
/// do not wait for parties asking for much.
const BESIDE: usize = 8;
/// Commits that a party asking for little may have on their way.
const FEW: usize = 4;
/// How long after one party's commit another's counts as beside it.
const AT_THIS_TIME: Duration = Duration::from_secs(1);

/// The commits on their way: what decides between single publishes and batches.
#[derive(Clone)]
pub(super) struct Load {
    throttle: Throttle,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    /// Those that go alone.
    alone: usize,
    by_party: HashMap<Party, usize>,
    /// When commits of more than one party were last on their way.
    shared: Option<Instant>,
}

/// One commit on its way.
pub(super) struct OnItsWay {
    load: Load,
    party: Party,
    /// It goes alone.
    pub(super) is_alone: bool,
}

impl Load {
    pub(super) fn new(throttle: Throttle) -> Self {
        Self {
            throttle,
            counts: Arc::default(),
        }
    }

    /// Counts a commit until it is dropped, and says whether it goes alone, as a single message of
    /// any weight may.
    pub(super) fn enter(&self, party: Party, single: bool, weight: u64) -> OnItsWay {
        let may_write = self.may_write(party);
        if !may_write {
            Resource::Messages.count_held_back();
        }
        let mut counts = self.counts();
        let own = counts.by_party.entry(party).or_default();
        let is_one_of_few = *own < FEW;
        *own += 1;
        let few = counts.all < BATCH_WORTH || (is_one_of_few && counts.alone < BESIDE);
        let is_alone = single && few && may_write;
        counts.all += 1;
        counts.alone += usize::from(is_alone);
        if counts.by_party.len() > 1 {
            counts.shared = Some(Instant::now());
        }
        drop(counts);
        if is_alone {
            self.wrote(party, weight);
        }
        OnItsWay {
            load: self.clone(),
            party,
            is_alone,
        }
    }

    /// Whether several parties append at this time. They take turns in asking, so each finds the
    /// others gone for a moment.
    pub(super) fn is_shared(&self) -> bool {
        let shared = self.counts().shared;
        shared.is_some_and(|shared| shared.elapsed() < AT_THIS_TIME)
    }

    /// Whether a party is currently not held back.
    pub(super) fn may_write(&self, party: Party) -> bool {
        self.throttle.admits(Resource::Messages, party)
    }

    /// Counts messages that a party writes, large ones as several.
    pub(super) fn wrote(&self, party: Party, weight: u64) {
        self.throttle.count(Resource::Messages, party, weight);
    }

    /// How many commits of a party that is held back may wait, if each must be written within
    /// `time`.
    pub(super) fn room(&self, party: Party, time: Duration) -> usize {
        usize::try_from(self.throttle.messages_within(party, time)).unwrap_or(usize::MAX)
    }

    /// Learns how long the server took to answer.
    pub(super) fn answered(&self, after: Duration) {
        self.throttle.answered(after);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let mut counts = self.load.counts();
        counts.all -= 1;
        counts.alone -= usize::from(self.is_alone);
        if let Some(own) = counts.by_party.get_mut(&self.party) {
            *own -= 1;
            if *own == 0 {
                counts.by_party.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogSettings;

    fn load() -> Load {
        Load::new(Throttle::new(&LogSettings::at("")))
    }

    fn enter(load: &Load, party: u64) -> OnItsWay {
        load.enter(Party(party), true, 1)
    }

    #[tokio::test]
    async fn few_go_alone_and_of_many_those_who_ask_for_little() {
        let load = load();
        let much: Vec<_> = (0..100).map(|_| enter(&load, 1)).collect();
        let alone = much.iter().take_while(|one| one.is_alone).count();
        assert_eq!(alone, BATCH_WORTH);
        drop(much);
        let much: Vec<_> = (0..100).map(|_| load.enter(Party(1), false, 1)).collect();
        assert!(much.iter().all(|one| !one.is_alone));
        let little: Vec<_> = (0..=FEW).map(|_| enter(&load, 2)).collect();
        let alone: Vec<_> = little.iter().map(|one| one.is_alone).collect();
        assert_eq!(alone, [true, true, true, true, false]);
        let more: Vec<_> = (3..100).map(|party| enter(&load, party)).collect();
        let alone = more.iter().filter(|one| one.is_alone).count();
        assert_eq!(alone, BESIDE - FEW);
        drop((much, little, more));
        assert!(load.counts().by_party.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_is_shared_for_a_moment_after_others_appended() {
        let load = load();
        let _one = enter(&load, 1);
        assert!(!load.is_shared());
        drop(enter(&load, 2));
        assert!(load.is_shared());
        tokio::time::advance(AT_THIS_TIME).await;
        assert!(!load.is_shared());
    }
}
