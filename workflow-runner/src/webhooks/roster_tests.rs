use super::super::requests::{Place, Requests};
use super::super::work::{Answer, Bounds, Known, Retry};
use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn roster(webhooks: &[&str]) -> Roster {
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    let mut roster = Roster::default();
    for (nth, webhook) in webhooks.iter().enumerate() {
        let partition = u16::try_from(nth).unwrap();
        insert(&mut roster, webhook, partition, Lane::new(bounds, 0));
    }
    roster
}

fn insert(roster: &mut Roster, webhook: &str, partition: u16, lane: Lane) {
    roster.insert((&"o".into(), &webhook.into()), partition, lane);
}

fn next(roster: &mut Roster, now: DateTime<Utc>, owns: impl Fn(u16) -> bool) -> Option<Wish> {
    roster.next(now, owns, &Places::new(512))
}

fn offer(roster: &mut Roster, webhook: &str, sequences: &[u64]) {
    let slot = roster.touch(&webhook.into()).unwrap();
    for sequence in sequences {
        slot.lane.offer(*sequence);
    }
}

fn attempts(roster: &mut Roster, now: DateTime<Utc>) -> Vec<(String, u64)> {
    std::iter::from_fn(|| next(roster, now, |_| true))
        .map(|wish| match wish {
            Wish::Attempt(key, _, work, _) => (key.webhook.into_string(), work.sequence),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn named(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    let named = pairs.iter();
    named.map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

#[test]
fn lanes_take_turns() {
    let mut roster = roster(&["h1", "h2"]);
    offer(&mut roster, "h1", &[1, 2, 3]);
    offer(&mut roster, "h2", &[1, 2]);
    let turns = [("h1", 1), ("h2", 1), ("h1", 2), ("h2", 2)];
    assert_eq!(attempts(&mut roster, at(0)), named(&turns));
}

#[test]
fn a_lane_without_a_place_keeps_its_turn_and_others_go_on() {
    let mut roster = roster(&["h1", "h2"]);
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    let lane = Lane::new(bounds, 0);
    roster.insert((&"p".into(), &"p1".into()), 9, lane);
    let places = Places::new(4);
    let held = places.try_enter(&"o".into(), &"h1".into()).unwrap();
    for webhook in ["h1", "h2", "p1"] {
        offer(&mut roster, webhook, &[1]);
    }
    let mut next = || match roster.next(at(0), |_| true, &places) {
        Some(Wish::Attempt(key, _, _, place)) => Some((key.webhook.into_string(), place)),
        _ => None,
    };
    let (first, second) = (next().unwrap(), next().unwrap());
    assert_eq!([first.0.as_str(), second.0.as_str()], ["p1", "h2"]);
    assert!(next().is_none(), "its organization has as many as are left");
    drop(held);
    assert_eq!(next().unwrap().0, "h1");
}

#[test]
fn a_retry_wakes_its_lane_when_it_is_due() {
    let mut roster = roster(&["h1"]);
    offer(&mut roster, "h1", &[1]);
    attempts(&mut roster, at(0));
    let retry = Retry {
        due: at(9),
        attempts: 1,
        recorded: 5,
    };
    let slot = roster.touch(&"h1".into()).unwrap();
    slot.lane.answered(Answer::Badly, at(0));
    slot.lane.recorded(1, Some(retry));
    assert!(attempts(&mut roster, at(1)).is_empty());
    assert_eq!(roster.next_wake(), Some(at(9)));
    roster.wake(at(9));
    assert_eq!(attempts(&mut roster, at(9)), named(&[("h1", 1)]));
    assert_eq!(roster.next_wake(), None);
}

#[test]
fn nothing_is_attempted_without_the_lease() {
    let mut roster = roster(&["h1", "h2"]);
    offer(&mut roster, "h1", &[1]);
    offer(&mut roster, "h2", &[1]);
    let first = next(&mut roster, at(0), |partition| partition == 1);
    assert!(matches!(first, Some(Wish::Attempt(_, 1, ..))), "{first:?}");
    assert!(next(&mut roster, at(0), |_| false).is_none());
    let again = roster.next_wake().unwrap();
    assert!(again > at(0) && again < at(1));
    roster.wake(at(1));
    assert_eq!(attempts(&mut roster, at(1)), named(&[("h1", 1)]));
}

#[test]
fn an_earlier_lane_of_the_endpoint_is_another() {
    let mut roster = roster(&["h1"]);
    offer(&mut roster, "h1", &[1]);
    let Some(Wish::Attempt(key, ..)) = next(&mut roster, at(0), |_| true) else {
        panic!("there is an attempt to make");
    };
    assert!(roster.touch_exactly(&key).is_some());
    roster.remove(&"h1".into());
    assert!(roster.touch_exactly(&key).is_none());
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    insert(&mut roster, "h1", 0, Lane::new(bounds, 1));
    assert!(roster.touch_exactly(&key).is_none());
}

#[test]
fn a_checkpoint_names_only_lanes_with_something_open() {
    let mut roster = roster(&["h1", "h2"]);
    offer(&mut roster, "h1", &[7]);
    let slot = roster.touch(&"h1".into()).unwrap();
    *slot.lane.requests() = Requests::new(2, Place { done: 1, cursor: 0 });
    let lane = LaneCheckpoint {
        through: Some(6),
        failing_since: None,
        requests: Some(Place { done: 1, cursor: 0 }),
    };
    let expected = Checkpoint {
        through: 9,
        attempts_after: 4,
        requests_through: 2,
        lanes: BTreeMap::from([("h1".into(), lane)]),
    };
    assert_eq!(roster.checkpoint(0, 9, 4, 2), expected);
    assert!(roster.checkpoint(1, 9, 4, 2).lanes.is_empty());
    let retry = Retry {
        due: at(9),
        attempts: 1,
        recorded: 3,
    };
    let slot = roster.touch(&"h2".into()).unwrap();
    slot.lane.remember(1, retry);
    assert_eq!(roster.checkpoint(1, 9, 4, 2).attempts_after, 2);
    let place = Place { done: 1, cursor: 0 };
    let carry_on = next(&mut roster, at(0), |_| true);
    assert!(matches!(carry_on, Some(Wish::Walk(_, 0, at)) if at == place));
    assert!(matches!(
        next(&mut roster, at(0), |_| true),
        Some(Wish::Attempt(
            _,
            _,
            Work {
                known: Known::New,
                ..
            },
            _
        ))
    ));
}
