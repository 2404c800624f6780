//! What was done, for the report and for what it excuses.

use std::collections::BTreeMap;
use std::time::Instant;

/// One thing that was done.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// The round it was done in.
    pub(crate) round: u32,
    /// The deed's name.
    pub(crate) deed: String,
    /// The targets, and details.
    pub(crate) what: String,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

/// Everything that was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The current round.
    pub(super) round: u32,
    pub(crate) acts: Vec<Act>,
    pub(crate) kills: u64,
    /// When at least one counting service could not reach Postgres: each then counts limits alone.
    pub(crate) counted_alone: Vec<(Instant, Instant)>,
    /// Targets that the current deed has hurt so far, and how often.
    hurt: Vec<(String, u32)>,
}

impl Done {
    /// Records that the current deed hurts a target, perhaps again.
    pub(super) fn hurt(&mut self, whom: String) {
        match self.hurt.last_mut() {
            Some((last, times)) if *last == whom => *times += 1,
            _ => self.hurt.push((whom, 1)),
        }
    }

    /// Ends the current deed. One that has hurt nothing did not happen.
    pub(super) fn end(&mut self, deed: String, began: Instant) {
        let told = |(whom, times): (String, u32)| match times {
            1 => whom,
            _ => format!("{whom} {times} times"),
        };
        let what: Vec<_> = self.hurt.drain(..).map(told).collect();
        if !what.is_empty() {
            self.add(deed, what.join(", "), began);
        }
    }

    /// Records something that is done by now.
    pub(super) fn add(&mut self, deed: String, what: String, began: Instant) {
        let ended = Instant::now();
        self.acts.push(Act {
            round: self.round,
            deed,
            what,
            began,
            ended,
        });
    }

    /// Whether a clock was wrong at any time.
    pub(crate) fn clocks_jumped(&self) -> bool {
        let jumps = super::Deed::ClockJumps.to_string();
        self.acts.iter().any(|act| act.deed == jumps)
    }

    /// How often each deed was done, by target.
    pub(crate) fn tally(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut tally: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for act in &self.acts {
            let by_whom = tally.entry(act.deed.clone()).or_default();
            *by_whom.entry(act.what.clone()).or_default() += 1;
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeds_are_counted_by_whom_they_hurt_and_what_hurts_nobody_is_not() {
        let mut done = Done::default();
        for _ in 0..2 {
            done.hurt("NATS".to_owned());
            done.hurt("Postgres".to_owned());
            done.end("kill-two".to_owned(), Instant::now());
        }
        done.end("second".to_owned(), Instant::now());
        done.hurt("NATS".to_owned());
        done.hurt("NATS".to_owned());
        done.end("kill-again-and-again".to_owned(), Instant::now());
        let tally = done.tally();
        assert_eq!(tally.len(), 2);
        assert_eq!(tally["kill-two"]["NATS, Postgres"], 2);
        assert_eq!(tally["kill-again-and-again"]["NATS 2 times"], 1);
    }
}
