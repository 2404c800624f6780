//! Writes the changed checkpoints of a process' partitions in the background.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Checkpoint, Checkpoints};
use crate::leases::Owned;

/// How long the writes of one round are spread over, for parts that check every second whether
/// checkpoints have changed.
pub(crate) const SPREAD: Duration = Duration::from_secs(3);
/// Approximate bytes written in one round. The rest follows in the next one, so that neither the
/// encoding task nor the log is kept busy with it.
const BYTES: usize = 4 * 1024 * 1024;
/// At shutdown no other work has to wait.
const AT_ONCE: Duration = Duration::ZERO;

/// The checkpoints that a process has written, and those that it is writing.
pub(crate) struct Saving<T: Checkpoint> {
    checkpoints: Checkpoints<T>,
    /// How long the writes of one round are spread over. Each is a flush of the disk, and appends
    /// wait for all of those written at once.
    over: Duration,
    written: HashMap<u16, T::Mark>,
    /// The next partition where those before it had too much for one round.
    next: u16,
    under_way: JoinSet<Vec<(u16, T::Mark)>>,
}

/// A checkpoint to be written.
struct News<M> {
    partition: u16,
    mark: M,
    encoded: Result<Vec<u8>, String>,
}

impl<T: Checkpoint> Saving<T> {
    pub(crate) fn new(checkpoints: Checkpoints<T>, over: Duration) -> Self {
        Self {
            checkpoints,
            over,
            written: HashMap::new(),
            next: 0,
            under_way: JoinSet::new(),
        }
    }

    /// The store that it writes to.
    pub(crate) fn checkpoints(&self) -> &Checkpoints<T> {
        &self.checkpoints
    }

    /// Whether the last round is still being written.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Starts writing the current state of partitions, except those unchanged since they were last
    /// written.
    pub(crate) fn begin<C: Borrow<T>>(&mut self, now: impl IntoIterator<Item = (u16, C)>) {
        let news = self.news(now, BYTES);
        if !news.is_empty() {
            let checkpoints = self.checkpoints.clone();
            self.under_way.spawn(write(checkpoints, news, self.over));
        }
    }

    /// Waits until a round is written; forever if none is in progress. May be dropped and called
    /// again.
    pub(crate) async fn ended(&mut self) {
        match self.under_way.join_next().await {
            Some(written) => self.written.extend(written.unwrap_or_default()),
            None => std::future::pending().await,
        }
    }

    /// Forgets partitions that are no longer ours.
    pub(crate) fn retain(&mut self, owned: &Owned) {
        self.written
            .retain(|partition, _| owned.contains(partition));
    }

    /// Writes the final state of the partitions at once, including what is not written yet.
    pub(crate) async fn finish<C: Borrow<T>>(&mut self, now: impl IntoIterator<Item = (u16, C)>) {
        self.under_way.shutdown().await;
        let news = self.news(now, usize::MAX);
        write(self.checkpoints.clone(), news, AT_ONCE).await;
    }

    fn news<C: Borrow<T>>(
        &mut self,
        now: impl IntoIterator<Item = (u16, C)>,
        most: usize,
    ) -> Vec<News<T::Mark>> {
        let mut now: Vec<(u16, C)> = now.into_iter().collect();
        now.sort_by_key(|(partition, _)| partition.wrapping_sub(self.next));
        let (mut news, mut bytes) = (Vec::new(), 0);
        for (partition, checkpoint) in now {
            if bytes >= most {
                self.next = partition;
                break;
            }
            let checkpoint = checkpoint.borrow();
            let mark = checkpoint.mark();
            if self.written.get(&partition) != Some(&mark) {
                let encoded = self.checkpoints.encode(checkpoint);
                bytes += encoded.as_ref().map_or(0, Vec::len);
                news.push(News {
                    partition,
                    mark,
                    encoded,
                });
            }
        }
        news
    }
}

/// Writes checkpoints, spread evenly over a time; returns which were written.
async fn write<T: Checkpoint>(
    checkpoints: Checkpoints<T>,
    news: Vec<News<T::Mark>>,
    over: Duration,
) -> Vec<(u16, T::Mark)> {
    let apart = over / u32::try_from(news.len()).unwrap_or(u32::MAX).max(1);
    let checkpoints = &checkpoints;
    let writes = (0_u32..).zip(news).map(async |(before, news)| {
        sleep(apart * before).await;
        let put = async { checkpoints.put(news.partition, news.encoded?).await };
        let put = put.await;
        if let Err(error) = &put {
            let (kind, partition) = (checkpoints.kind.name(), news.partition);
            tracing::warn!(kind, partition, error, "A checkpoint was not written");
        }
        put.is_ok().then_some((news.partition, news.mark))
    });
    join_all(writes).await.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::super::MAX_BYTES;
    use super::super::tests::{Text, checkpoints};
    use super::*;

    const MOMENT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_hours(1);

    fn text(mark: u8) -> Text {
        Text(mark, "a".to_owned())
    }

    #[tokio::test]
    async fn the_last_that_was_written_of_a_partition_is_read() {
        let checkpoints = checkpoints().await;
        let mut saving = Saving::new(checkpoints.clone(), MOMENT);
        for round in [1, 2] {
            saving.begin([(1, text(round)), (2, text(round + 10))]);
            saving.ended().await;
            assert_eq!(checkpoints.read(1).await, Some(text(round)));
            assert_eq!(checkpoints.read(2).await, Some(text(round + 10)));
        }
    }

    #[tokio::test]
    async fn what_has_not_moved_is_not_written_again() {
        let mut saving = Saving::new(checkpoints().await, MOMENT);
        saving.begin([(1, text(1))]);
        saving.ended().await;
        saving.begin([(1, text(1))]);
        assert!(!saving.is_under_way());
        // Others may have written there since.
        saving.retain(&Owned::default());
        saving.begin([(1, text(1))]);
        assert!(saving.is_under_way());
    }

    #[tokio::test]
    async fn large_ones_are_written_a_few_at_a_time_each_in_its_turn() {
        let checkpoints = checkpoints().await;
        let mut saving = Saving::new(checkpoints.clone(), MOMENT);
        let large = |round| Text(round, "x".repeat(BYTES / 2));
        for (round, expected) in [
            (1, [Some(1), Some(1), None]),
            (2, [Some(2), Some(1), Some(2)]),
            (3, [Some(2), Some(3), Some(3)]),
        ] {
            saving.begin((1..=3).map(|partition| (partition, large(round))));
            saving.ended().await;
            for (partition, expected) in (1..).zip(expected) {
                let read = checkpoints.read(partition).await;
                assert_eq!(read, expected.map(large), "{partition} in round {round}");
            }
        }
    }

    #[tokio::test]
    async fn they_do_not_all_ask_for_the_disk_at_once() {
        let mut saving = Saving::new(checkpoints().await, MOMENT);
        let begun = Instant::now();
        saving.begin((0..4).map(|partition| (partition, text(1))));
        saving.ended().await;
        // The last begins a quarter of the time before its end.
        assert!(begun.elapsed() >= MOMENT * 3 / 4, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn what_is_being_written_at_the_end_is_written_before_it() {
        let checkpoints = checkpoints().await;
        let mut saving = Saving::new(checkpoints.clone(), LONG);
        let now = [(1, text(1)), (2, text(1)), (3, text(1))];
        saving.begin(now.clone());
        saving.finish(now).await;
        for partition in 1..=3 {
            assert_eq!(checkpoints.read(partition).await, Some(text(1)));
        }
    }

    #[tokio::test]
    async fn what_could_not_be_written_stays_as_it_was_and_is_tried_again() {
        let checkpoints = checkpoints().await;
        let mut saving = Saving::new(checkpoints.clone(), MOMENT);
        saving.begin([(1, text(1))]);
        saving.ended().await;
        let large = Text(2, "x".repeat(MAX_BYTES + 1));
        for _ in 0..2 {
            saving.begin([(1, large.clone()), (2, text(2))]);
            saving.ended().await;
        }
        assert_eq!(checkpoints.read(1).await, Some(text(1)));
        assert_eq!(checkpoints.read(2).await, Some(text(2)));
        saving.begin([(1, text(2)), (2, text(2))]);
        saving.ended().await;
        assert_eq!(checkpoints.read(1).await, Some(text(2)));
    }

    #[tokio::test]
    async fn nothing_ends_where_nothing_was_begun() {
        let mut saving = Saving::new(checkpoints().await, MOMENT);
        assert!(timeout(MOMENT, saving.ended()).await.is_err());
    }
}
