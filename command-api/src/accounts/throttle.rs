//! Slowing down those who guess: per client address and per account or phone number.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use service::HttpError;
use tokio::time::Instant;

/// Names before those that have been forgiven are first looked for.
const FIRST_SWEEP: usize = 1_024;

/// So many failures in so long for each name; then one more for each share of that time. A process
/// counts for itself: that is enough to make guessing hopeless, and needs nothing that can be away.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// Until when each name's failures have been forgiven; names are hashed, so that no personal
    /// data is kept.
    forgiven: Mutex<Forgiven>,
    hasher: RandomState,
    each: Duration,
    window: Duration,
}

#[derive(Debug, Default)]
struct Forgiven {
    at: HashMap<u64, Instant>,
    sweep_at: usize,
}

impl Throttle {
    pub(crate) fn new(failures: u32, window: Duration) -> Self {
        Self {
            forgiven: Mutex::default(),
            hasher: RandomState::new(),
            each: window / failures.max(1),
            window,
        }
    }

    /// Counts a failure ahead of its time, or says how long to wait.
    fn enter(&self, name: u64, now: Instant) -> Result<(), Duration> {
        let mut forgiven = self.forgiven.lock().unwrap_or_else(PoisonError::into_inner);
        if forgiven.at.len() >= forgiven.sweep_at.max(FIRST_SWEEP) {
            forgiven.at.retain(|_, at| *at > now);
            forgiven.sweep_at = forgiven.at.len() * 2;
        }
        let at = forgiven.at.entry(name).or_insert(now);
        let next = (*at).max(now) + self.each;
        let ahead = next.duration_since(now);
        if let Some(wait) = ahead
            .checked_sub(self.window)
            .filter(|wait| !wait.is_zero())
        {
            return Err(wait);
        }
        *at = next;
        Ok(())
    }

    fn take_back(&self, name: u64) {
        let mut forgiven = self.forgiven.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = forgiven.at.get_mut(&name) {
            *at = at.checked_sub(self.each).unwrap_or(*at);
        }
    }
}

/// Both throttles.
#[derive(Debug)]
pub(crate) struct Throttles {
    addresses: Throttle,
    names: Throttle,
}

/// A try that counts as a failure unless it is said to have succeeded.
#[must_use]
#[derive(Debug)]
pub(crate) struct Try<'t> {
    throttles: &'t Throttles,
    address: u64,
    name: u64,
}

impl Throttles {
    pub(crate) fn new(addresses: Throttle, names: Throttle) -> Self {
        Self { addresses, names }
    }

    /// Begins a try from an address for a name (an e-mail address, an account, a phone number).
    pub(crate) fn enter(&self, address: IpAddr, name: impl Hash) -> Result<Try<'_>, HttpError> {
        let now = Instant::now();
        let entered = self.address(address, now)?;
        let name = self.names.hasher.hash_one(name);
        if let Err(wait) = self.names.enter(name, now) {
            self.addresses.take_back(entered);
            return Err(too_many(wait));
        }
        Ok(Try {
            throttles: self,
            address: entered,
            name,
        })
    }

    /// Counts something from an address that can be neither right nor wrong.
    pub(crate) fn count(&self, address: IpAddr) -> Result<(), HttpError> {
        self.address(address, Instant::now()).map(|_| ())
    }

    fn address(&self, address: IpAddr, now: Instant) -> Result<u64, HttpError> {
        let address = self.addresses.hasher.hash_one(network(address));
        let entered = self.addresses.enter(address, now);
        entered.map(|()| address).map_err(too_many)
    }
}

impl Try<'_> {
    /// The try was right: it does not count.
    pub(crate) fn succeeded(self) {
        self.throttles.addresses.take_back(self.address);
        self.throttles.names.take_back(self.name);
    }
}

/// Whoever has one IPv6 address has a /64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => {
            let mut segments = v6.segments();
            segments[4..].fill(0);
            IpAddr::from(segments)
        }
    }
}

fn too_many(wait: Duration) -> HttpError {
    let seconds = wait.as_secs() + 1;
    let message = format!("too many tries; try again in {seconds} s");
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttles(addresses: u32, names: u32) -> Throttles {
        let window = Duration::from_mins(1);
        Throttles::new(
            Throttle::new(addresses, window),
            Throttle::new(names, window),
        )
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn failures_add_up_for_a_name_and_are_forgiven_with_time() {
        let throttles = throttles(100, 3);
        let enter = |name: &str| throttles.enter(address("192.0.2.1"), name).map(drop);
        for _ in 0..3 {
            enter("ada").unwrap();
        }
        let refused = enter("ada").unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        enter("bob").unwrap();
        tokio::time::advance(Duration::from_secs(21)).await;
        enter("ada").unwrap();
        assert!(enter("ada").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn success_does_not_count() {
        let throttles = throttles(2, 2);
        for _ in 0..10 {
            let entered = throttles.enter(address("192.0.2.1"), "ada").unwrap();
            entered.succeeded();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_slowed_whatever_the_name_and_a_v6_network_is_one() {
        let throttles = throttles(2, 100);
        for (name, from) in [("a", "2001:db8::1"), ("b", "2001:db8::2")] {
            let _ = throttles.enter(address(from), name).unwrap();
        }
        assert!(throttles.enter(address("2001:db8::3"), "c").is_err());
        assert!(throttles.count(address("2001:db8::3")).is_err());
        let _ = throttles.enter(address("2001:db8:0:1::1"), "c").unwrap();
        let _ = throttles.enter(address("::ffff:192.0.2.1"), "c").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_is_named_is_enough() {
        let throttles = throttles(1, 7);
        let _ = throttles.enter(address("192.0.2.1"), "a").unwrap();
        assert!(throttles.enter(address("192.0.2.1"), "a").is_err());
        tokio::time::advance(Duration::from_secs(61)).await;
        let _ = throttles.enter(address("192.0.2.1"), "a").unwrap();
    }
}
