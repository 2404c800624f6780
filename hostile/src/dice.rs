//! Choices determined by a seed.

use std::ops::Range;
use std::time::Duration;

/// A generator (splitmix64) whose choices follow from its seed alone.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for `whose`: its choices are not affected by others.
    #[must_use]
    pub fn of(&self, whose: &str) -> Self {
        let seed = whose
            .bytes()
            .fold(self.0 ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self(seed)
    }

    /// Returns any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.throw() % end).unwrap_or_default()
    }

    /// True with this probability in percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a random one of `among`.
    pub fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        among.get(self.below(among.len())).cloned()
    }

    /// Returns one by its weight.
    pub fn weigh<T: Copy>(&mut self, among: &[(usize, T)]) -> T {
        let all = among.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(all);
        for (weight, one) in among {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *one,
            }
        }
        among[0].1
    }

    /// Returns a time within a range of milliseconds.
    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        let span = usize::try_from(range.end - range.start).unwrap_or(1);
        let above = u64::try_from(self.below(span)).unwrap_or_default();
        Duration::from_millis(range.start + above)
    }

    /// Waits between half and one and a half times as long.
    pub(crate) async fn pause(&mut self, about: Duration) {
        let permille = u32::try_from(500 + self.below(1_000)).unwrap_or(1_000);
        tokio::time::sleep(about * permille / 1_000).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_one_throws_the_same_and_others_do_not() {
        let throws = |seed, whose| {
            let mut dice = Dice::new(seed).of(whose);
            (0..20).map(|_| dice.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7, "templates 1"), throws(7, "templates 1"));
        assert_ne!(throws(7, "templates 1"), throws(8, "templates 1"));
        assert_ne!(throws(7, "templates 1"), throws(7, "templates 2"));
    }

    #[test]
    fn weights_decide_how_often() {
        let mut dice = Dice::new(1);
        let heads = (0..1_000)
            .filter(|_| dice.weigh(&[(9, true), (1, false)]))
            .count();
        assert!((850..950).contains(&heads), "{heads}");
    }
}
