//! Which sequences of a stream are gone by the server's own account.

use crate::streams::LogStream;

/// What the server said when it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    /// The first sequence that the stream still has; those before it have expired.
    first: u64,
    /// Deleted sequences behind the first, in order.
    single: Vec<u64>,
}

impl Deleted {
    pub(crate) async fn ask(stream: &LogStream) -> Result<Self, String> {
        let info = stream.stream.info_builder().with_deleted(true).fetch();
        let info = info.await.map_err(|error| error.to_string())?.info;
        let mut single = info.state.deleted.unwrap_or_default();
        single.sort_unstable();
        Ok(Self {
            first: info.state.first_sequence,
            single,
        })
    }

    /// Whether every sequence from `from` up to but without `next` is known to be gone.
    pub(crate) fn explain(&self, from: u64, next: u64) -> bool {
        let from = from.max(self.first);
        if from >= next {
            return true;
        }
        let start = self.single.partition_point(|sequence| *sequence < from);
        let gone = self.single[start..].iter().copied();
        gone.take_while(|sequence| *sequence < next).count() as u64 == next - from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_before_the_first_has_expired() {
        let deleted = Deleted {
            first: 10,
            single: Vec::new(),
        };
        assert!(deleted.explain(1, 10));
        assert!(deleted.explain(5, 6));
        assert!(!deleted.explain(5, 11));
        assert!(!deleted.explain(10, 12));
    }

    #[test]
    fn a_gap_must_be_deleted_whole() {
        let deleted = Deleted {
            first: 3,
            single: vec![5, 6, 8, 9],
        };
        assert!(deleted.explain(5, 7));
        assert!(deleted.explain(8, 10));
        assert!(deleted.explain(1, 3));
        assert!(!deleted.explain(5, 9), "7 was not deleted");
        assert!(!deleted.explain(4, 7), "4 was not deleted");
        assert!(!deleted.explain(8, 11), "10 was not deleted");
    }

    #[test]
    fn nothing_is_excused_before_the_server_was_asked() {
        assert!(!Deleted::default().explain(1, 2));
    }
}
