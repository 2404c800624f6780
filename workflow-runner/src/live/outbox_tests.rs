use chrono::{DateTime, TimeDelta};
use schemas::location::Updated;
use schemas::{AggregateType, Context, Event, EventId, OrgId, Recorded, Sealed, StreamId};
use uuid::Uuid;

use super::*;

/// A fix of a person, made the given number of seconds after the epoch.
fn entry(sequence: u64, person: u64, second: i64) -> Entry {
    let recorded = Recorded {
        sequence,
        stream: StreamId::new(&OrgId::from("_"), AggregateType::Track, "7"),
        id: EventId(Uuid::nil()),
        time: DateTime::UNIX_EPOCH,
        event: Event::LocationUpdated(Updated {
            user_id: AccountId(person),
            recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
            sealed: Sealed::from_ciphertext(String::new()),
        }),
        context: Context::default(),
        receipt: None,
    };
    Entry {
        fact: Arc::new(Fact {
            visibility: Visibility::of(&recorded).unwrap(),
            event: LiveEvent::bare(sequence, AggregateType::Track),
        }),
        settled: None,
    }
}

fn taken(outbox: &mut Outbox, max: usize) -> Vec<u64> {
    let entries = outbox.take(max);
    entries
        .iter()
        .map(|entry| entry.fact.event.sequence())
        .collect()
}

#[test]
fn what_is_taken_in_time_is_all_there_is() {
    let mut outbox = Outbox::new(Channel::Locations);
    for sequence in 1..=500 {
        outbox.push(entry(sequence, sequence % 3, 0));
    }
    assert_eq!(outbox.take_conflated(), None);
    assert_eq!(taken(&mut outbox, 2), [1, 2]);
    assert_eq!(taken(&mut outbox, 9_999).len(), 498);
    assert!(outbox.front().is_none());
}

#[test]
fn a_slow_reader_gets_the_newest_of_each_person() {
    let mut outbox = Outbox::new(Channel::Locations);
    for sequence in 11..=523 {
        let second = if sequence == 523 { 0 } else { 1_000 };
        outbox.push(entry(
            sequence,
            sequence % 2,
            second + i64::try_from(sequence).unwrap(),
        ));
    }
    // The last is late: person 1 was elsewhere after that.
    assert_eq!(
        outbox.take_conflated(),
        Some(Conflated { from: 10, to: 523 })
    );
    assert_eq!(outbox.take_conflated(), None);
    assert_eq!(taken(&mut outbox, 9), [521, 522]);
}

#[test]
fn leaving_out_goes_on_from_where_it_began() {
    let mut outbox = Outbox::new(Channel::Locations);
    let most = u64::try_from(MAX_POSITIONS).unwrap();
    for sequence in 1..=3 * most {
        outbox.push(entry(sequence, 1, 0));
    }
    let conflated = outbox.take_conflated().unwrap();
    assert_eq!(conflated.from, 0);
    let left = taken(&mut outbox, 9_999);
    assert!(left[0] <= conflated.to && left.last() == Some(&(3 * most)));
}

#[test]
fn where_nobody_can_be_left_out_nothing_is_said() {
    let mut outbox = Outbox::new(Channel::Locations);
    for sequence in 1..=2_000 {
        outbox.push(entry(sequence, sequence, 0));
    }
    assert_eq!(outbox.take_conflated(), None);
    assert_eq!(taken(&mut outbox, 9_999).len(), 2_000);
}

#[test]
fn calls_for_help_are_never_left_out() {
    let mut outbox = Outbox::new(Channel::Sos);
    for sequence in 1..=4_096 {
        outbox.push(entry(sequence, 1, 0));
    }
    assert!(!outbox.is_hopeless());
    assert_eq!(outbox.take_conflated(), None);
    outbox.push(entry(4_097, 1, 0));
    assert!(outbox.is_hopeless());
    assert!(outbox.front().is_none());
}
