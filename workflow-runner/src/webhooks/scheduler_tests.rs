use super::super::requests::{RequestCursor, Requests};
use super::super::work::{Bounds, Prior, Retry, Verdict};
use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn scheduler(webhooks: &[&str]) -> Scheduler {
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    let mut scheduler = Scheduler::default();
    for (nth, webhook) in webhooks.iter().enumerate() {
        let partition = u16::try_from(nth).unwrap();
        insert(
            &mut scheduler,
            webhook,
            partition,
            EndpointQueue::new(bounds, 0),
        );
    }
    scheduler
}

fn insert(scheduler: &mut Scheduler, webhook: &str, partition: u16, queue: EndpointQueue) {
    scheduler.insert((&"o".into(), &webhook.into()), partition, queue);
}

fn next(
    scheduler: &mut Scheduler,
    now: DateTime<Utc>,
    owns: impl Fn(u16) -> bool,
) -> Option<Action> {
    scheduler.next(now, owns, &ConcurrencyLimit::new(512))
}

fn offer(scheduler: &mut Scheduler, webhook: &str, sequences: &[u64]) {
    let slot = scheduler.touch(&webhook.into()).unwrap();
    for sequence in sequences {
        slot.queue.offer(*sequence);
    }
}

fn attempts(scheduler: &mut Scheduler, now: DateTime<Utc>) -> Vec<(String, u64)> {
    std::iter::from_fn(|| next(scheduler, now, |_| true))
        .map(|action| match action {
            Action::Attempt(key, _, work, _) => (key.webhook.into_string(), work.sequence),
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
    let mut scheduler = scheduler(&["h1", "h2"]);
    offer(&mut scheduler, "h1", &[1, 2, 3]);
    offer(&mut scheduler, "h2", &[1, 2]);
    let turns = [("h1", 1), ("h2", 1), ("h1", 2), ("h2", 2)];
    assert_eq!(attempts(&mut scheduler, at(0)), named(&turns));
}

#[test]
fn a_lane_without_a_place_keeps_its_turn_and_others_go_on() {
    let mut scheduler = scheduler(&["h1", "h2"]);
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    let queue = EndpointQueue::new(bounds, 0);
    scheduler.insert((&"p".into(), &"p1".into()), 9, queue);
    let limit = ConcurrencyLimit::new(4);
    let held = limit.try_enter(&"o".into(), &"h1".into()).unwrap();
    for webhook in ["h1", "h2", "p1"] {
        offer(&mut scheduler, webhook, &[1]);
    }
    let mut next = || match scheduler.next(at(0), |_| true, &limit) {
        Some(Action::Attempt(key, _, _, permit)) => Some((key.webhook.into_string(), permit)),
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
    let mut scheduler = scheduler(&["h1"]);
    offer(&mut scheduler, "h1", &[1]);
    attempts(&mut scheduler, at(0));
    let retry = Retry {
        due: at(9),
        attempts: 1,
        recorded: 5,
    };
    let slot = scheduler.touch(&"h1".into()).unwrap();
    slot.queue.answered(Verdict::Badly, at(0));
    slot.queue.recorded(1, Some(retry));
    assert!(attempts(&mut scheduler, at(1)).is_empty());
    assert_eq!(scheduler.next_wake(), Some(at(9)));
    scheduler.wake(at(9));
    assert_eq!(attempts(&mut scheduler, at(9)), named(&[("h1", 1)]));
    assert_eq!(scheduler.next_wake(), None);
}

#[test]
fn nothing_is_attempted_without_the_lease() {
    let mut scheduler = scheduler(&["h1", "h2"]);
    offer(&mut scheduler, "h1", &[1]);
    offer(&mut scheduler, "h2", &[1]);
    let first = next(&mut scheduler, at(0), |partition| partition == 1);
    assert!(
        matches!(first, Some(Action::Attempt(_, 1, ..))),
        "{first:?}"
    );
    assert!(next(&mut scheduler, at(0), |_| false).is_none());
    let again = scheduler.next_wake().unwrap();
    assert!(again > at(0) && again < at(1));
    scheduler.wake(at(1));
    assert_eq!(attempts(&mut scheduler, at(1)), named(&[("h1", 1)]));
}

#[test]
fn an_earlier_lane_of_the_endpoint_is_another() {
    let mut scheduler = scheduler(&["h1"]);
    offer(&mut scheduler, "h1", &[1]);
    let Some(Action::Attempt(key, ..)) = next(&mut scheduler, at(0), |_| true) else {
        panic!("there is an attempt to make");
    };
    assert!(scheduler.touch_exactly(&key).is_some());
    scheduler.remove(&"h1".into());
    assert!(scheduler.touch_exactly(&key).is_none());
    let bounds = Bounds {
        concurrency: 2,
        pending: 100,
    };
    insert(&mut scheduler, "h1", 0, EndpointQueue::new(bounds, 1));
    assert!(scheduler.touch_exactly(&key).is_none());
}

#[test]
fn a_checkpoint_names_only_lanes_with_something_open() {
    let mut scheduler = scheduler(&["h1", "h2"]);
    offer(&mut scheduler, "h1", &[7]);
    let slot = scheduler.touch(&"h1".into()).unwrap();
    *slot.queue.requests() = Requests::new(2, RequestCursor { done: 1, cursor: 0 });
    let queue = EndpointCheckpoint {
        through: Some(6),
        failing_since: None,
        requests: Some(RequestCursor { done: 1, cursor: 0 }),
    };
    let expected = BTreeMap::from([("h1".into(), queue)]);
    assert_eq!(scheduler.checkpoints(0), expected);
    assert!(scheduler.checkpoints(1).is_empty());
    assert_eq!(scheduler.open_records(0).count(), 0);
    let retry = Retry {
        due: at(9),
        attempts: 1,
        recorded: 3,
    };
    let slot = scheduler.touch(&"h2".into()).unwrap();
    slot.queue.remember(1, retry);
    assert!(scheduler.open_records(1).eq([3]));
    let place = RequestCursor { done: 1, cursor: 0 };
    let carry_on = next(&mut scheduler, at(0), |_| true);
    assert!(matches!(carry_on, Some(Action::Replay(_, 0, at)) if at == place));
    assert!(matches!(
        next(&mut scheduler, at(0), |_| true),
        Some(Action::Attempt(
            _,
            _,
            Work {
                prior: Prior::New,
                ..
            },
            _
        ))
    ));
}
