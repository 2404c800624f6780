//! Rules, and the counters that they apply to.

use std::time::Duration;

/// At most `most` attempts in `window`; then one more for each share of that time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Its name in metrics.
    pub(super) name: &'static str,
    pub(super) most: u32,
    /// Without one, counts do not run out.
    pub(super) window: Option<Duration>,
    /// Whether it lets clients pass that sign in from where they signed in before.
    pub(super) spares: bool,
}

impl Rule {
    pub(super) const fn new(name: &'static str, most: u32, window: Duration) -> Self {
        Self {
            name,
            most,
            window: Some(window),
            spares: false,
        }
    }

    pub(super) const fn sparing(self) -> Self {
        Self {
            spares: true,
            ..self
        }
    }

    /// The same for a network of many clients.
    pub(super) const fn times(self, factor: u32) -> Self {
        Self {
            most: self.most.saturating_mul(factor),
            ..self
        }
    }
}

/// The counter of one rule for one network, address, account or number.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    /// A keyed hash, so that no personal data is kept.
    pub(super) name: String,
    pub(super) rule: &'static str,
    pub(super) most: f64,
    /// How much runs out in a second.
    pub(super) refill: f64,
    pub(super) spares: bool,
    /// Whether a successful attempt is taken out again.
    pub(super) forgives: bool,
}

impl Counter {
    pub(super) fn new(name: String, rule: &Rule, forgives: bool) -> Self {
        let most = f64::from(rule.most.max(1));
        let refill = rule
            .window
            .map_or(0.0, |window| most / window.as_secs_f64().max(0.001));
        Self {
            name,
            rule: rule.name,
            most,
            refill,
            spares: rule.spares,
            forgives,
        }
    }

    /// Whether an attempt fits at this use.
    pub(super) fn fits(&self, used: f64) -> bool {
        used + 1.0 <= self.most
    }

    /// How long until an attempt fits at this use; `None` if it never does.
    pub(super) fn wait(&self, used: f64) -> Option<Duration> {
        Duration::try_from_secs_f64((used + 1.0 - self.most) / self.refill).ok()
    }
}

/// A counter that is currently full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Full {
    pub(super) rule: &'static str,
    /// How long until it takes more; `None` if it never does.
    pub(super) wait: Option<Duration>,
}

/// Who has counted an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// All processes together, in Postgres.
    All,
    /// This process alone, while Postgres is unavailable.
    One,
}

/// How an attempt was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    /// Whether the name and the network belong together.
    pub(super) is_known: bool,
    /// Of each counter, whether the attempt was put in: a full one lets a known client pass and
    /// takes nothing.
    pub(super) counted: Vec<bool>,
    pub(super) by: CountedBy,
}

impl Admission {
    /// The counters, of all that were asked, that the attempt is taken out of if it succeeds.
    pub(super) fn forgiving(&self, asked: Vec<Counter>) -> Vec<Counter> {
        let with_counted = asked.into_iter().zip(&self.counted);
        let forgiving = with_counted.filter(|(counter, counted)| **counted && counter.forgives);
        forgiving.map(|(counter, _)| counter).collect()
    }
}
