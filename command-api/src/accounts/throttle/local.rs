//! What this process knows of the counters: enough to reject at once clients that continue although
//! there is no room, and to continue alone while Postgres is unavailable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::counter::{Admission, CountedBy, Counter, Full};

/// Number of counters (or pairs) at which obsolete ones are first searched for.
const FIRST_SWEEP: usize = 1_024;
/// And how many are kept at most: what is in them has been counted in Postgres too.
const MOST: usize = 65_536;
/// How long a refusal is repeated without asking again.
const REFUSED_FOR: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Local(Mutex<Levels>);

#[derive(Debug, Default)]
struct Levels {
    levels: Kept<Level>,
    /// Until when a name and a network belong together.
    pairs: Kept<Instant>,
}

/// The use of a counter at some time.
#[derive(Clone, Copy, Debug)]
struct Level {
    used: f64,
    at: Instant,
    refill: f64,
    /// Until when Postgres need not be asked: it was full a moment ago.
    full_until: Option<Instant>,
}

impl Level {
    fn used(&self, now: Instant) -> f64 {
        (self.used - self.refill * now.duration_since(self.at).as_secs_f64()).max(0.0)
    }
}

impl Local {
    /// The counter that was full a moment ago, if one was.
    pub(super) fn still_full(&self, counters: &[Counter], now: Instant) -> Option<Full> {
        let known = self.known();
        counters.iter().find_map(|counter| {
            let level = known.levels.map.get(&counter.name)?;
            level
                .full_until
                .filter(|until| *until > now && !counter.spares)?;
            Some(Full {
                rule: counter.rule,
                wait: counter.wait(level.used(now)),
            })
        })
    }

    /// Records the use of the counters, and which of them is full.
    pub(super) fn see(
        &self,
        counters: &[Counter],
        used: &[f64],
        full: Option<usize>,
        now: Instant,
    ) {
        let mut known = self.known();
        for (place, (counter, used)) in counters.iter().zip(used).enumerate() {
            let is_full = full == Some(place);
            let level = Level {
                used: *used,
                at: now,
                refill: counter.refill,
                full_until: is_full.then(|| now + REFUSED_FOR),
            };
            known.put(counter, level, now);
        }
    }

    /// Decides without Postgres.
    pub(super) fn decide(
        &self,
        counters: &[Counter],
        pair: Option<&str>,
        now: Instant,
    ) -> Result<Admission, Full> {
        let mut known = self.known();
        let until = pair.and_then(|pair| known.pairs.map.get(pair));
        let is_known = until.is_some_and(|until| *until > now);
        let used: Vec<f64> = counters
            .iter()
            .map(|counter| known.used(counter, now))
            .collect();
        let asked = || counters.iter().zip(&used);
        let full =
            asked().find(|(counter, used)| !(counter.fits(**used) || counter.spares && is_known));
        if let Some((counter, used)) = full {
            return Err(Full {
                rule: counter.rule,
                wait: counter.wait(*used),
            });
        }
        let mut counted = Vec::with_capacity(counters.len());
        for (counter, used) in asked() {
            // Someone who is spared makes nobody wait for longer.
            let fits = counter.fits(*used);
            counted.push(fits);
            let level = Level {
                used: if fits { used + 1.0 } else { *used },
                at: now,
                refill: counter.refill,
                full_until: None,
            };
            known.put(counter, level, now);
        }
        Ok(Admission {
            is_known,
            counted,
            by: CountedBy::One,
        })
    }

    /// Takes an attempt out again of counters that it was put into.
    pub(super) fn back(&self, counters: &[Counter]) {
        let mut known = self.known();
        for counter in counters {
            if let Some(level) = known.levels.map.get_mut(&counter.name) {
                level.used = (level.used - 1.0).max(0.0);
                level.full_until = None;
            }
        }
    }

    /// Remembers that a name and a network belong together.
    pub(super) fn befriend(&self, pair: &str, now: Instant, until: Instant) {
        let pairs = &mut self.known().pairs;
        pairs.make_room(|known_until| *known_until > now);
        pairs.map.insert(pair.to_owned(), until);
    }

    fn known(&self) -> MutexGuard<'_, Levels> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Levels {
    fn used(&self, counter: &Counter, now: Instant) -> f64 {
        let level = self.levels.map.get(&counter.name);
        level.map_or(0.0, |level| level.used(now))
    }

    fn put(&mut self, counter: &Counter, level: Level, now: Instant) {
        self.levels.make_room(|level| level.used(now) > 0.0);
        self.levels.map.insert(counter.name.clone(), level);
    }
}

/// A bounded map.
#[derive(Debug)]
struct Kept<T> {
    map: HashMap<String, T>,
    sweep_at: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            map: HashMap::new(),
            sweep_at: FIRST_SWEEP,
        }
    }
}

impl<T> Kept<T> {
    fn make_room(&mut self, says_something: impl Fn(&T) -> bool) {
        if self.map.len() < self.sweep_at {
            return;
        }
        self.map.retain(|_, kept| says_something(kept));
        if self.map.len() >= MOST {
            self.map.clear();
        }
        self.sweep_at = (self.map.len() * 2).clamp(FIRST_SWEEP, MOST);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::counter::Rule;
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn counter(name: &str, most: u32) -> Counter {
        Counter::new(name.to_owned(), &Rule::new("failures", most, MINUTE), true)
    }

    fn sparing(name: &str, most: u32) -> Counter {
        let rule = Rule::new("failures", most, MINUTE).sparing();
        Counter::new(name.to_owned(), &rule, true)
    }

    fn is_known(local: &Local, counters: &[Counter], now: Instant) -> bool {
        let admission = local.decide(counters, Some("ada at home"), now);
        admission.unwrap().is_known
    }

    #[test]
    fn tries_add_up_for_a_name_and_run_out_with_time() {
        let (local, now) = (Local::default(), Instant::now());
        let (ada, bob) = ([counter("ada", 3)], [counter("bob", 3)]);
        for _ in 0..3 {
            local.decide(&ada, None, now).unwrap();
        }
        let full = local.decide(&ada, None, now).unwrap_err();
        assert_eq!(full.wait, Some(Duration::from_secs(20)));
        local.decide(&bob, None, now).unwrap();
        let later = now + Duration::from_secs(20);
        local.decide(&ada, None, later).unwrap();
        assert!(local.decide(&ada, None, later).is_err());
    }

    #[test]
    fn a_try_counts_under_all_or_under_none() {
        let (local, now) = (Local::default(), Instant::now());
        let both = [counter("address", 9), counter("ada", 1)];
        local.decide(&both, None, now).unwrap();
        for _ in 0..20 {
            assert!(local.decide(&both, None, now).is_err());
        }
        for _ in 0..8 {
            local.decide(&both[..1], None, now).unwrap();
        }
        assert!(local.decide(&both[..1], None, now).is_err());
    }

    #[test]
    fn what_was_right_is_taken_out_again() {
        let (local, now) = (Local::default(), Instant::now());
        let ada = [counter("ada", 1)];
        for _ in 0..5 {
            local.decide(&ada, None, now).unwrap();
            local.back(&ada);
        }
    }

    #[test]
    fn who_is_known_is_spared_and_makes_nobody_wait_longer() {
        let (local, now) = (Local::default(), Instant::now());
        let ada = [sparing("ada", 2)];
        local.befriend("ada at home", now, now + MINUTE);
        for _ in 0..10 {
            assert!(is_known(&local, &ada, now));
        }
        let full = local.decide(&ada, Some("ada elsewhere"), now).unwrap_err();
        assert_eq!(full.wait, Some(Duration::from_secs(30)));
        let later = now + MINUTE;
        assert!(!is_known(&local, &ada, later));
    }

    #[test]
    fn a_success_gives_a_full_counter_nothing_that_it_did_not_take() {
        let (local, now) = (Local::default(), Instant::now());
        let home = [counter("ada at home", 9), sparing("home", 2)];
        local.befriend("ada at home", now, now + MINUTE);
        for _ in 0..2 {
            local.decide(&home[1..], None, now).unwrap();
        }
        for _ in 0..5 {
            let own = local.decide(&home, Some("ada at home"), now).unwrap();
            assert_eq!(own.counted, [true, false]);
            let forgiving = own.forgiving(home.to_vec());
            assert_eq!(forgiving.len(), 1);
            local.back(&forgiving);
            local.decide(&home[1..], None, now).unwrap_err();
        }
        // What a counter with room took is given back.
        let later = now + MINUTE;
        local.befriend("ada at home", later, later + MINUTE);
        for _ in 0..5 {
            let own = local.decide(&home, Some("ada at home"), later).unwrap();
            assert_eq!(own.counted, [true, true]);
            local.back(&own.forgiving(home.to_vec()));
        }
    }

    #[test]
    fn a_refusal_is_repeated_for_a_moment_only() {
        let (local, now) = (Local::default(), Instant::now());
        let both = [counter("address", 1), sparing("ada", 1)];
        local.see(&both, &[1.0, 1.0], Some(0), now);
        assert_eq!(local.still_full(&both, now).unwrap().rule, "failures");
        assert_eq!(local.still_full(&both, now + REFUSED_FOR), None);
        // It is not known here whether a client is known.
        local.see(&both, &[0.0, 1.0], Some(1), now);
        assert_eq!(local.still_full(&both, now), None);
    }

    #[test]
    fn it_takes_bounded_memory() {
        let (local, now) = (Local::default(), Instant::now());
        for nth in 0..2 * MOST {
            local
                .decide(&[counter(&nth.to_string(), 1)], None, now)
                .unwrap();
            local.befriend(&nth.to_string(), now, now + MINUTE);
        }
        let known = local.known();
        assert!(known.levels.map.len() <= MOST);
        assert!(known.pairs.map.len() <= MOST);
    }

    proptest! {
        /// Never more than a whole counter at once, and in the long run no faster than it runs out;
        /// the returned wait is long enough.
        #[test]
        fn no_more_fits_than_runs_out(
            most in 1..10_u32,
            waits in prop::collection::vec(0..15_000_u64, 1..200),
        ) {
            let (local, begun) = (Local::default(), Instant::now());
            let one = [counter("one", most)];
            let (mut now, mut admitted) = (begun, 0);
            for wait in waits {
                now += Duration::from_millis(wait);
                if let Err(full) = local.decide(&one, None, now) {
                    now += full.wait.unwrap() + Duration::from_millis(1);
                    prop_assert!(local.decide(&one, None, now).is_ok());
                }
                admitted += 1;
                let ran_out = f64::from(most) * (now - begun).as_secs_f64() / 60.0;
                prop_assert!(f64::from(admitted) <= f64::from(most) + ran_out + 0.01);
            }
        }
    }
}
