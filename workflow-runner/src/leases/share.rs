//! How many partitions each member gets.

/// The share of the member at `place` among `members` that share `partitions`: as even as whole
/// numbers allow.
pub(super) fn share(partitions: usize, members: usize, place: usize) -> usize {
    let members = members.max(1);
    partitions / members + usize::from(place < partitions % members)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn everything_is_shared_evenly(partitions in 0_usize..200, members in 1_usize..50) {
            let shares: Vec<usize> =
                (0..members).map(|place| share(partitions, members, place)).collect();
            prop_assert_eq!(shares.iter().sum::<usize>(), partitions);
            let most = shares.iter().max().copied().unwrap_or_default();
            let least = shares.iter().min().copied().unwrap_or_default();
            prop_assert!(most - least <= 1);
        }
    }
}
