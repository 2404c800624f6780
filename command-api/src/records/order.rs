//! Chunks of records that are written concurrently, but in order where they share a record.

use std::collections::HashSet;

use schemas::RecordId;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::batch::Wanted;

/// Chunks of one import or upload that are written at a time: while one is flushed to disk, the
/// next is on its way to the log, and others are being prepared.
pub(super) const SIDE_BY_SIDE: usize = 4;

/// The chunks being written.
#[derive(Default)]
pub(super) struct Order {
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    ids: HashSet<RecordId>,
    ended: CancellationToken,
}

/// A chunk's turn, until it is dropped.
pub(super) struct Turn {
    before: Vec<CancellationToken>,
    _until: DropGuard,
}

impl Order {
    /// The turn of the next chunk.
    pub(super) fn turn(&mut self, wanted: &[Wanted]) -> Turn {
        self.under_way.retain(|one| !one.ended.is_cancelled());
        let ids: HashSet<RecordId> = wanted.iter().map(|one| one.id.clone()).collect();
        let earlier = self.under_way.iter();
        let before = earlier
            .filter(|earlier| !earlier.ids.is_disjoint(&ids))
            .map(|earlier| earlier.ended.clone())
            .collect();
        let ended = CancellationToken::new();
        let until = ended.clone().drop_guard();
        self.under_way.push(UnderWay { ids, ended });
        Turn {
            before,
            _until: until,
        }
    }
}

impl Turn {
    /// Waits for the end of all earlier chunks with the same records.
    pub(super) async fn comes(&self) {
        for earlier in &self.before {
            earlier.cancelled().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::record::{Kind, parse_object};
    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    fn chunk(ids: &[&str]) -> Vec<Wanted> {
        let wanted = |id: &&str| {
            let object = json!({"email": "a@b.c"}).as_object().cloned().unwrap();
            let draft = parse_object(Kind::Contacts, object).unwrap();
            Wanted::new(RecordId::from(*id), draft)
        };
        ids.iter().map(wanted).collect()
    }

    #[test]
    fn only_chunks_of_the_same_records_wait_for_each_other() {
        let mut order = Order::default();
        let first = order.turn(&chunk(&["a", "b"]));
        let apart = order.turn(&chunk(&["c"]));
        let both = order.turn(&chunk(&["b", "c"]));
        let comes = |turn: &Turn| turn.comes().now_or_never().is_some();
        assert!(comes(&first) && comes(&apart) && !comes(&both));
        drop(first);
        assert!(!comes(&both));
        drop(apart);
        assert!(comes(&both));
        drop(both);
        assert!(comes(&order.turn(&chunk(&["a", "b", "c"]))));
        assert_eq!(order.under_way.len(), 1);
    }
}
