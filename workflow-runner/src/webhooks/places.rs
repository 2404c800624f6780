//! Requests under way, shared by organization and within it by endpoint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemas::{OrgId, WebhookId};
use tokio::sync::watch;

/// Places for requests; clones are the same ones.
///
/// An organization may begin one more request while it has fewer under way than there are places
/// left, and an endpoint while it has fewer than its organization has left by that rule. So who
/// has many slow endpoints takes at most half of all places when alone, always leaves some to
/// those who come, and some of its own to its other endpoints.
#[derive(Clone, Debug)]
pub(super) struct Places {
    state: Arc<Mutex<State>>,
    freed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    free: usize,
    by_org: HashMap<OrgId, OfOrg>,
}

#[derive(Debug, Default)]
struct OfOrg {
    held: usize,
    by_endpoint: HashMap<WebhookId, usize>,
}

/// A place for one request; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    org: OrgId,
    webhook: WebhookId,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The organization has its share.
    Organization,
    /// The endpoint has its share of the organization's.
    Endpoint,
}

impl Places {
    pub(super) fn new(places: usize) -> Self {
        let state = State {
            free: places.max(1),
            by_org: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            freed: watch::Sender::new(()),
        }
    }

    /// Takes a place if the endpoint may have one more now.
    pub(super) fn try_enter(&self, org: &OrgId, webhook: &WebhookId) -> Result<Place, Full> {
        let mut state = self.lock();
        let free = state.free;
        let of_org = state.by_org.get(org);
        let held = of_org.map_or(0, |of_org| of_org.held);
        if held >= free {
            return Err(Full::Organization);
        }
        let of_endpoint = of_org.and_then(|of_org| of_org.by_endpoint.get(webhook));
        let left = (free + held).div_ceil(2) - held;
        if of_endpoint.copied().unwrap_or_default() >= left {
            return Err(Full::Endpoint);
        }
        state.free -= 1;
        let of_org = state.by_org.entry(org.clone()).or_default();
        of_org.held += 1;
        *of_org.by_endpoint.entry(webhook.clone()).or_default() += 1;
        drop(state);
        Ok(Place {
            places: self.clone(),
            org: org.clone(),
            webhook: webhook.clone(),
        })
    }

    /// Places that nobody holds.
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }

    /// Told whenever a place was given back.
    pub(super) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.lock();
        state.free += 1;
        if let Some(of_org) = state.by_org.get_mut(&self.org) {
            of_org.held -= 1;
            if let Some(held) = of_org.by_endpoint.get_mut(&self.webhook) {
                *held -= 1;
                if *held == 0 {
                    of_org.by_endpoint.remove(&self.webhook);
                }
            }
            if of_org.held == 0 {
                state.by_org.remove(&self.org);
            }
        }
        drop(state);
        self.places.freed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn enter(places: &Places, org: &str, webhook: &str) -> Result<Place, Full> {
        places.try_enter(&org.into(), &webhook.into())
    }

    #[test]
    fn sixteen_slow_endpoints_leave_room_for_others_and_for_their_own() {
        let places = Places::new(512);
        let mut slow = Vec::new();
        for nth in 0..512 {
            slow.extend(enter(&places, "slow", &format!("h{}", nth % 16)));
        }
        assert!(slow.len() <= 256 && slow.len() > 200, "{}", slow.len());
        assert!(enter(&places, "slow", "another").is_ok());
        let quick: Vec<_> = std::iter::repeat_with(|| enter(&places, "quick", "h"))
            .take(32)
            .collect();
        assert!(quick.iter().all(Result::is_ok));
    }

    #[test]
    fn who_gives_a_place_back_says_so() {
        let places = Places::new(1);
        let held = enter(&places, "a", "h").unwrap();
        let freed = places.freed();
        assert_eq!(enter(&places, "b", "h").unwrap_err(), Full::Organization);
        drop(held);
        assert!(freed.has_changed().unwrap());
        assert!(enter(&places, "b", "h").is_ok());
        assert!(places.lock().by_org.is_empty());
    }

    proptest! {
        #[test]
        fn a_newcomer_finds_a_place_beside_any_crowd(
            places in 2_usize..60,
            deeds in prop::collection::vec((any::<bool>(), 0_u8..4, 0_u8..4), 0..200),
        ) {
            let all = Places::new(places);
            let mut held = Vec::new();
            for (enters, org, webhook) in deeds {
                if enters {
                    held.extend(enter(&all, &format!("o{org}"), &format!("h{webhook}")));
                } else if !held.is_empty() {
                    held.swap_remove(usize::from(org) % held.len());
                }
                prop_assert_eq!(all.free() + held.len(), places);
                // Whoever is told that its organization has its share holds as much as is left.
                for org in 0..4 {
                    let org = OrgId::from(format!("o{org}"));
                    let own = held.iter().filter(|place| place.org == org).count();
                    let told = all.try_enter(&org, &"new".into()).map(drop);
                    prop_assert_eq!(told.is_err(), own >= all.free());
                }
            }
            drop(held);
            prop_assert!(all.lock().by_org.is_empty());
        }
    }
}
