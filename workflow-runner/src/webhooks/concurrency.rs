//! Limit of requests in progress, shared by organization and within it by endpoint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemas::{OrgId, WebhookId};
use tokio::sync::watch;

/// Limits the requests in progress; clones share the limit.
///
/// An organization may begin one more request while it has fewer in progress than there are permits
/// left, and an endpoint while it has fewer than its organization has left by that rule. So an
/// organization with many slow endpoints takes at most half of all permits when alone, always
/// leaves some to newcomers, and some of its own to its other endpoints.
#[derive(Clone, Debug)]
pub(super) struct ConcurrencyLimit {
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

/// A permit for one request; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    permits: ConcurrencyLimit,
    org: OrgId,
    webhook: WebhookId,
}

/// Why no permit is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The organization has used up its share.
    Organization,
    /// The endpoint has used up its share of the organization's.
    Endpoint,
}

impl ConcurrencyLimit {
    pub(super) fn new(permits: usize) -> Self {
        let state = State {
            free: permits.max(1),
            by_org: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            freed: watch::Sender::new(()),
        }
    }

    /// Takes a permit if the endpoint may have one more now.
    pub(super) fn try_enter(&self, org: &OrgId, webhook: &WebhookId) -> Result<Permit, Full> {
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
        Ok(Permit {
            permits: self.clone(),
            org: org.clone(),
            webhook: webhook.clone(),
        })
    }

    /// Number of free permits.
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }

    /// Notified whenever a permit was given back.
    pub(super) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.lock();
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
        self.permits.freed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn enter(permits: &ConcurrencyLimit, org: &str, webhook: &str) -> Result<Permit, Full> {
        permits.try_enter(&org.into(), &webhook.into())
    }

    #[test]
    fn sixteen_slow_endpoints_leave_room_for_others_and_for_their_own() {
        let permits = ConcurrencyLimit::new(512);
        let mut slow = Vec::new();
        for nth in 0..512 {
            slow.extend(enter(&permits, "slow", &format!("h{}", nth % 16)));
        }
        assert!(slow.len() <= 256 && slow.len() > 200, "{}", slow.len());
        assert!(enter(&permits, "slow", "another").is_ok());
        let quick: Vec<_> = std::iter::repeat_with(|| enter(&permits, "quick", "h"))
            .take(32)
            .collect();
        assert!(quick.iter().all(Result::is_ok));
    }

    #[test]
    fn who_gives_a_place_back_says_so() {
        let permits = ConcurrencyLimit::new(1);
        let held = enter(&permits, "a", "h").unwrap();
        let freed = permits.freed();
        assert_eq!(enter(&permits, "b", "h").unwrap_err(), Full::Organization);
        drop(held);
        assert!(freed.has_changed().unwrap());
        assert!(enter(&permits, "b", "h").is_ok());
        assert!(permits.lock().by_org.is_empty());
    }

    proptest! {
        #[test]
        fn a_newcomer_finds_a_place_beside_any_crowd(
            permits in 2_usize..60,
            deeds in prop::collection::vec((any::<bool>(), 0_u8..4, 0_u8..4), 0..200),
        ) {
            let all = ConcurrencyLimit::new(permits);
            let mut held = Vec::new();
            for (enters, org, webhook) in deeds {
                if enters {
                    held.extend(enter(&all, &format!("o{org}"), &format!("h{webhook}")));
                } else if !held.is_empty() {
                    held.swap_remove(usize::from(org) % held.len());
                }
                prop_assert_eq!(all.free() + held.len(), permits);
                // An organization that is refused holds at least as much as is left.
                for org in 0..4 {
                    let org = OrgId::from(format!("o{org}"));
                    let own = held.iter().filter(|permit| permit.org == org).count();
                    let told = all.try_enter(&org, &"new".into()).map(drop);
                    prop_assert_eq!(told.is_err(), own >= all.free());
                }
            }
            drop(held);
            prop_assert!(all.lock().by_org.is_empty());
        }
    }
}
