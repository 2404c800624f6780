//! Considers one person's positions in their order.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use schemas::{OrgId, Recorded};

use super::recent::Fresh;

/// How long everybody else's positions wait for the crossings of one organization.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The organizations at whose places a position is considered. All circles of persons count as one.
#[derive(Clone, Copy, Debug)]
pub(super) enum At<'a> {
    /// All but these, and at none for long.
    AllBut(&'a BTreeSet<OrgId>),
    /// Only this one.
    Only(&'a OrgId),
}

impl At<'_> {
    pub(super) fn includes(self, org: &OrgId) -> bool {
        match self {
            Self::AllBut(others) => !others.contains(org),
            Self::Only(only) => only == org,
        }
    }

    pub(super) fn max_wait(self) -> Duration {
        match self {
            Self::AllBut(_) => TIMEOUT,
            Self::Only(_) => Duration::MAX,
        }
    }
}

/// Considers positions.
pub(super) trait Consider {
    /// Considers a position; everything in the log must be known. Returns the organizations at
    /// whose places it could not be considered, because the log takes nothing from them at present.
    fn consider(&self, recorded: &Recorded, at: At<'_>) -> impl Future<Output = Vec<OrgId>> + Send;
}

/// Considers a person's positions. `waiting` are the organizations at which earlier ones wait.
/// Returns the positions to be deferred, and at which organizations.
pub(super) async fn go_through(
    crossings: &impl Consider,
    positions: &[Fresh],
    mut waiting: BTreeSet<OrgId>,
) -> Vec<(OrgId, u64)> {
    let mut deferred = Vec::new();
    for fresh in positions {
        let at = At::AllBut(&waiting);
        let away = crossings.consider(&fresh.recorded, at).await;
        waiting.extend(away);
        let sequence = fresh.recorded.sequence;
        deferred.extend(waiting.iter().map(|org| (org.clone(), sequence)));
    }
    deferred
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use chrono::DateTime;
    use schemas::location::Updated;
    use schemas::{AccountId, Context, Event, EventId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    /// Everybody is at a place of each of these organizations, and the log takes nothing from one.
    struct Places {
        orgs: [&'static str; 3],
        away: Mutex<Option<&'static str>>,
        asked: Mutex<Vec<(&'static str, u64)>>,
    }

    impl Consider for Places {
        async fn consider(&self, recorded: &Recorded, at: At<'_>) -> Vec<OrgId> {
            let included = |org: &&str| at.includes(&OrgId::from(*org));
            let orgs: Vec<&str> = self.orgs.into_iter().filter(included).collect();
            let away = *self.away.lock().unwrap();
            let asked = orgs.iter().map(|org| (*org, recorded.sequence));
            self.asked.lock().unwrap().extend(asked);
            let away = orgs.into_iter().filter(|org| Some(*org) == away);
            away.map(OrgId::from).collect()
        }
    }

    fn position(sequence: u64) -> Fresh {
        let recorded = Recorded {
            sequence,
            stream: StreamId::of_track(AccountId(7)),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: Event::LocationUpdated(Updated {
                user_id: AccountId(7),
                recorded_at: DateTime::UNIX_EPOCH,
                sealed: Sealed::from_ciphertext(String::new()),
            }),
            context: Context::default(),
            receipt: None,
        };
        Fresh {
            partition: 1,
            recorded: Arc::new(recorded),
        }
    }

    #[tokio::test]
    async fn an_organization_that_is_held_back_holds_up_no_other_and_its_order_stays() {
        let places = Places {
            orgs: ["a", "much", "b"],
            away: Mutex::new(Some("much")),
            asked: Mutex::default(),
        };
        let positions = [position(1), position(4)];
        let deferred = go_through(&places, &positions, BTreeSet::new()).await;
        let much = |sequence| (OrgId::from("much"), sequence);
        assert_eq!(deferred, [much(1), much(4)]);
        let asked = std::mem::take(&mut *places.asked.lock().unwrap());
        let at_once = [("a", 1), ("much", 1), ("b", 1), ("a", 4), ("b", 4)];
        assert_eq!(asked, at_once, "what follows waits behind the first");
        // The log takes all again, and earlier positions still wait.
        *places.away.lock().unwrap() = None;
        let waiting = BTreeSet::from([OrgId::from("much")]);
        let deferred = go_through(&places, &[position(6)], waiting).await;
        assert_eq!(deferred, [much(6)]);
        assert_eq!(*places.asked.lock().unwrap(), [("a", 6), ("b", 6)]);
        let deferred = go_through(&places, &[position(8)], BTreeSet::new()).await;
        assert!(deferred.is_empty());
    }
}
