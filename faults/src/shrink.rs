//! Reduces the nemesis' rounds to the fewest that still show what a run has shown.

use std::collections::BTreeSet;

use crate::{Options, Report, run};

/// Number of runs that may show it: chance plays a part in each.
const TRIES: usize = 2;

/// Runs, and if something is wrong repeats with fewer and fewer rounds, as long as one of the same
/// checks finds something wrong. Returns the last report that showed it, or that of the first run
/// if it is clean.
///
/// # Panics
/// Like [`run`].
pub async fn shrink(options: &Options) -> Report {
    let mut shown = Box::pin(run(options)).await;
    if shown.is_clean() {
        println!("Nothing is wrong, so there is nothing to shrink.");
        return shown;
    }
    println!("{shown}");
    let wanted: BTreeSet<String> = shown.wrong().into_iter().map(str::to_owned).collect();
    let rounds: Vec<u32> = shown.rounds().iter().copied().collect();
    let shows = async |rounds: &[u32]| {
        let fewer = Options {
            rounds: Some(rounds.iter().copied().collect()),
            record: None,
            ..options.clone()
        };
        for _ in 0..TRIES {
            let report = Box::pin(run(&fewer)).await;
            if report.wrong().iter().any(|check| wanted.contains(*check)) {
                println!("Shown by {} of them: {}", rounds.len(), listed(rounds));
                shown = report;
                return true;
            }
        }
        println!("Not shown by {} of them: {}", rounds.len(), listed(rounds));
        false
    };
    let left = fewest(rounds, shows).await;
    match left.as_slice() {
        [] => println!("Wrong without any deed."),
        left => println!("Enough: ROUNDS={}", listed(left)),
    }
    shown
}

fn listed(rounds: &[u32]) -> String {
    let rounds: Vec<_> = rounds.iter().map(ToString::to_string).collect();
    rounds.join(",")
}

/// Leaves out smaller and smaller parts of a list, as long as the rest still shows it (delta
/// debugging). No single element of the result can be left out.
async fn fewest<T: Clone>(mut all: Vec<T>, mut shows: impl AsyncFnMut(&[T]) -> bool) -> Vec<T> {
    let mut parts = 2;
    while !all.is_empty() {
        let size = all.len().div_ceil(parts);
        let mut fewer = None;
        for start in (0..all.len()).step_by(size) {
            let end = all.len().min(start + size);
            let rest = [&all[..start], &all[end..]].concat();
            if shows(&rest).await {
                fewer = Some(rest);
                break;
            }
        }
        match fewer {
            Some(rest) => {
                all = rest;
                parts = (parts - 1).max(2);
            }
            None if size == 1 => break,
            None => parts *= 2,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use hostile::Dice;

    use super::*;

    async fn shrunk(all: u32, needed: &BTreeSet<u32>) -> (BTreeSet<u32>, usize) {
        let mut asked = 0;
        let shows = async |some: &[u32]| {
            asked += 1;
            needed.iter().all(|one| some.contains(one))
        };
        let left = fewest((0..all).collect(), shows).await;
        (left.into_iter().collect(), asked)
    }

    #[tokio::test]
    async fn what_is_left_is_what_was_needed() {
        let mut dice = Dice::new(1);
        for _ in 0..500 {
            let all: Vec<u32> = (0..=u32::try_from(dice.below(60)).unwrap_or(0)).collect();
            let needed = (0..dice.below(5)).filter_map(|_| dice.pick(&all)).collect();
            let (left, _) = shrunk(u32::try_from(all.len()).unwrap_or(0), &needed).await;
            assert_eq!(left, needed, "of {}", all.len());
        }
    }

    #[tokio::test]
    async fn one_of_many_is_found_in_few_runs() {
        let needed = BTreeSet::from([700]);
        let (left, asked) = shrunk(1_000, &needed).await;
        assert_eq!(left, needed);
        assert!(asked < 50, "{asked}");
    }
}
