//! What a seed decides.

use std::time::Duration;

/// Choices (splitmix64) that follow from a seed and from who makes them.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64, whose: &str, nth: usize) -> Self {
        let nth = u64::try_from(nth).unwrap_or(u64::MAX);
        let mixed = whose
            .bytes()
            .fold(seed ^ nth.rotate_left(32), |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self(mixed)
    }

    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.throw() % end).unwrap_or_default()
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
        let throws = |seed, nth| {
            let mut chance = Chance::new(seed, "templates", nth);
            (0..20).map(|_| chance.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7, 1), throws(7, 1));
        assert_ne!(throws(7, 1), throws(8, 1));
        assert_ne!(throws(7, 1), throws(7, 2));
    }
}
