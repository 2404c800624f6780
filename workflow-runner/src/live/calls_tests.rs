use schemas::sos::Answered as Reply;
use schemas::{AggregateType, Context, EventId, Sealed, SosId};
use uuid::Uuid;

use super::*;

const ANNA: AccountId = AccountId(7);
const BEN: AccountId = AccountId(8);

fn recorded(org: &str, sequence: u64, call: u64, event: Event) -> Recorded {
    Recorded {
        sequence,
        stream: StreamId::new(&OrgId::from(org), AggregateType::Sos, call.to_string()),
        id: EventId(Uuid::from_u128(sequence.into())),
        time: at(sequence),
        event,
        context: Context::default(),
        receipt: None,
    }
}

/// An event is written every second.
fn at(sequence: u64) -> DateTime<Utc> {
    let seconds = i64::try_from(sequence).unwrap();
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn triggered(org: &str, sequence: u64, call: u64, of: AccountId) -> Recorded {
    let triggered = Triggered {
        sos_id: SosId::from(call.to_string()),
        user_id: of,
        audience: vec![BEN],
        late: false,
        recorded_at: at(sequence),
        sealed: Sealed::from_ciphertext("x".repeat(100)),
    };
    recorded(org, sequence, call, Event::SosTriggered(triggered))
}

fn reply(call: u64) -> Reply {
    Reply {
        sos_id: SosId::from(call.to_string()),
        user_id: ANNA,
        by: BEN,
        audience: vec![BEN],
        late: false,
        recorded_at: DateTime::UNIX_EPOCH,
        sealed: Sealed::from_ciphertext(String::new()),
    }
}

fn acknowledged(sequence: u64, call: u64) -> Recorded {
    recorded("_", sequence, call, Event::SosAcknowledged(reply(call)))
}

fn resolved(sequence: u64, call: u64) -> Recorded {
    recorded("_", sequence, call, Event::SosResolved(reply(call)))
}

/// The sequences of a person's calls in the persons' part of the log.
fn open(calls: &OpenCalls, of: AccountId) -> Vec<u64> {
    let calls = calls.of(&"_".into(), [of], DateTime::UNIX_EPOCH);
    calls.iter().map(|call| call.recorded.sequence).collect()
}

#[test]
fn a_call_is_open_until_it_is_resolved_in_whatever_order_its_events_come() {
    let events = [
        triggered("_", 1, 1, ANNA),
        triggered("_", 2, 2, ANNA),
        acknowledged(3, 2),
        resolved(4, 1),
    ];
    for order in [[0, 1, 2, 3], [2, 3, 0, 1], [3, 0, 2, 1]] {
        let mut calls = OpenCalls::default();
        for nth in order.into_iter().chain(order) {
            calls.take(&events[nth]);
        }
        calls.past_is_known();
        assert_eq!(open(&calls, ANNA), [2], "{order:?}");
        let seen = calls.of(&"_".into(), [ANNA, BEN], DateTime::UNIX_EPOCH);
        assert!(seen[0].acknowledged);
        calls.take(&resolved(5, 2));
        assert!(calls.calls.is_empty() && calls.sequences.is_empty());
        assert!(calls.by_person.is_empty() && calls.bytes == 0);
    }
}

#[test]
fn an_organization_has_its_own_part_and_who_is_forgotten_none() {
    let mut calls = OpenCalls::default();
    calls.take(&triggered("_", 1, 1, ANNA));
    calls.take(&triggered("o1", 2, 1, ANNA));
    calls.take(&triggered("_", 3, 2, BEN));
    let all = |calls: &OpenCalls, org: &str| {
        let all = calls.of(&org.into(), [BEN, ANNA], DateTime::UNIX_EPOCH);
        let sequences = all.iter().map(|call| call.recorded.sequence);
        sequences.collect::<Vec<u64>>()
    };
    assert_eq!(all(&calls, "_"), [3, 1]);
    assert_eq!(all(&calls, "o1"), [2]);
    assert!(all(&calls, "o2").is_empty());
    calls.forget(ANNA);
    assert_eq!(all(&calls, "_"), [3]);
    assert!(all(&calls, "o1").is_empty());
}

#[test]
fn what_is_held_is_bounded_and_one_persons_calls_hide_no_others() {
    let mut calls = OpenCalls::default();
    calls.take(&triggered("_", 1, 1, BEN));
    for call in 2..1_000 {
        calls.take(&triggered("_", call, call, ANNA));
    }
    assert_eq!(open(&calls, BEN), [1]);
    assert_eq!(open(&calls, ANNA).len(), OF_ONE);
    assert_eq!(open(&calls, ANNA)[0], 999);
    calls.max_bytes = 20 * CALL_BYTES;
    for call in 1_010..2_000 {
        calls.take(&triggered("_", call, call, AccountId(call)));
    }
    assert!(calls.bytes <= calls.max_bytes);
    assert_eq!(calls.calls.len(), calls.sequences.len());
    assert_eq!(open(&calls, AccountId(1_999)), [1_999]);
    let later = 2_000 + u64::try_from(LAST.num_seconds()).unwrap();
    calls.take(&triggered("_", later, later, BEN));
    assert_eq!(calls.calls.len(), 1, "the others were made a day ago");
    let since = at(later + 1);
    assert!(calls.of(&"_".into(), [BEN], since).is_empty());
}
