use super::*;

const BOUNDS: Bounds = Bounds {
    concurrency: 4,
    pending: 100,
};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn lane_with(sequences: impl IntoIterator<Item = u64>) -> EndpointQueue {
    let mut queue = EndpointQueue::new(BOUNDS, 0);
    for sequence in sequences {
        queue.offer(sequence);
    }
    queue
}

fn take_all(queue: &mut EndpointQueue, now: DateTime<Utc>) -> Vec<u64> {
    std::iter::from_fn(|| queue.next(now, false))
        .map(|work| work.sequence)
        .collect()
}

fn finish(queue: &mut EndpointQueue, sequence: u64, answer: Verdict, retry: Option<Retry>) {
    queue.answered(answer, at(0));
    queue.recorded(sequence, retry);
}

fn retry(due: i64, recorded: u64) -> Retry {
    Retry {
        due: at(due),
        attempts: 1,
        recorded,
    }
}

#[test]
fn first_attempts_go_in_order_up_to_the_bound() {
    let mut queue = lane_with(1..=9);
    assert_eq!(take_all(&mut queue, at(0)), [1, 2, 3, 4]);
    finish(&mut queue, 2, Verdict::Well, None);
    assert_eq!(take_all(&mut queue, at(0)), [5]);
}

#[test]
fn an_event_is_taken_once() {
    let mut queue = lane_with([3, 3, 2]);
    assert_eq!(take_all(&mut queue, at(0)), [3]);
}

#[test]
fn a_retry_waits_until_it_is_due_and_knows_its_past() {
    let mut queue = lane_with([1]);
    queue.next(at(0), false);
    finish(&mut queue, 1, Verdict::Badly, Some(retry(5, 77)));
    assert_eq!(queue.next(at(4), false), None);
    assert_eq!(queue.wake(false), Some(at(5)));
    let prior = Prior::Attempted {
        attempts: 1,
        recorded: 77,
    };
    assert_eq!(queue.next(at(5), false), Some(Work { sequence: 1, prior }));
    assert_eq!(queue.wake(false), None);
}

#[test]
fn retries_and_first_attempts_take_turns() {
    let mut queue = lane_with(1..=3);
    for (sequence, recorded) in [(11, 1), (12, 2), (13, 3)] {
        queue.remember(sequence, retry(0, recorded));
    }
    assert_eq!(take_all(&mut queue, at(1)), [1, 11, 2, 12]);
}

#[test]
fn an_overwhelmed_endpoint_gets_less_and_one_that_recovers_gets_more() {
    let mut queue = lane_with(1..=20);
    assert_eq!(take_all(&mut queue, at(0)).len(), 4);
    for sequence in 1..=4 {
        finish(&mut queue, sequence, Verdict::Overwhelmed, None);
    }
    assert_eq!(take_all(&mut queue, at(0)), [5]);
    finish(&mut queue, 5, Verdict::Well, None);
    assert_eq!(take_all(&mut queue, at(0)), [6, 7]);
}

/// Makes and finishes attempts until at most `left` wait; returns their sequences.
fn drain(queue: &mut EndpointQueue, left: usize) -> Vec<u64> {
    let mut done = Vec::new();
    while queue.waiting() > left {
        for sequence in take_all(queue, at(0)) {
            finish(queue, sequence, Verdict::Well, None);
            done.push(sequence);
        }
    }
    done
}

fn refill(sequences: impl IntoIterator<Item = u64>, through: u64) -> Refill {
    Refill {
        untried: sequences.into_iter().collect(),
        waiting: Vec::new(),
        through,
        complete: true,
        head_before: through,
    }
}

fn gap(after: u64, unsure_through: u64) -> Gap {
    Gap {
        after,
        unsure_through,
    }
}

#[test]
fn a_long_backlog_stays_in_the_log_and_comes_back_from_there() {
    let held = MAX_BACKLOG as u64;
    let many = held + 100;
    let mut queue = lane_with(1..=many);
    assert_eq!(queue.waiting(), MAX_BACKLOG);
    assert_eq!(queue.wants_refill(), None, "there is no room yet");
    let mut done = drain(&mut queue, LOW_BACKLOG - 1);
    assert_eq!(queue.wants_refill(), Some(gap(held, 0)));
    assert_eq!(queue.wants_refill(), None, "one refill at a time");
    queue.refill(&refill(held + 1..=many, many));
    assert_eq!(queue.wants_refill(), None);
    queue.offer(many + 1);
    done.extend(drain(&mut queue, 0));
    assert_eq!(done, (1..=many + 1).collect::<Vec<_>>());
}

#[test]
fn what_comes_while_the_log_is_read_is_sent_as_it_was_wanted_then() {
    let mut queue = EndpointQueue::resume(BOUNDS, 10, 0, 20);
    assert_eq!(queue.wants_refill(), Some(gap(10, 0)));
    // The first of a type that the endpoint has just added, and that the reader knows nothing of.
    for sequence in [21, 21, 23] {
        queue.offer(sequence);
    }
    queue.refill(&refill([15], 20));
    assert_eq!(queue.wants_refill(), None);
    assert!(queue.offer(24) && !queue.offer(23));
    assert_eq!(take_all(&mut queue, at(0)), [15, 21, 23, 24]);
}

#[test]
fn what_comes_while_the_log_is_read_comes_back_from_there_if_there_is_no_room() {
    let mut queue = EndpointQueue::resume(BOUNDS, 0, 0, 10);
    queue.wants_refill();
    let last = 11 + MAX_BACKLOG as u64;
    let kept = (11..=last).filter(|sequence| queue.offer(*sequence));
    assert_eq!(kept.count(), MAX_BACKLOG);
    assert!(!queue.offer(last + 1), "a gap would follow");
    queue.refill(&refill([5], 10));
    assert_eq!(queue.wants_refill(), Some(gap(10, 0)));
    queue.refill_failed();
    assert_eq!(queue.wants_refill(), Some(gap(10, 0)));
    queue.offer(last + 2);
    let mut some = refill(11..=20, 20);
    some.complete = false;
    queue.refill(&some);
    assert_eq!(queue.wants_refill(), Some(gap(20, 0)));
    assert_eq!(drain(&mut queue, 0).last(), Some(&20));
}

#[test]
fn a_lane_that_was_taken_over_starts_in_the_log_and_asks_what_was_done() {
    let mut queue = EndpointQueue::resume(BOUNDS, 10, 20, 15);
    assert!(!queue.offer(21));
    assert_eq!(queue.next(at(0), false), None);
    assert_eq!(queue.cursor(), Some(10));
    assert_eq!(queue.wants_refill(), Some(gap(10, 20)));
    let mut found = refill([15, 21], 21);
    found.waiting = vec![(12, retry(0, 7))];
    queue.refill(&found);
    assert_eq!(take_all(&mut queue, at(1)), [15, 12, 21]);
    assert!(queue.offer(22), "it is no longer behind");
}

#[test]
fn what_another_process_may_have_tried_is_read_from_the_log_whenever_it_comes() {
    let mut queue = EndpointQueue::resume(BOUNDS, 10, 20, 15);
    queue.wants_refill();
    assert!(!queue.offer(17), "nobody has looked it up");
    queue.refill(&refill([], 15));
    assert_eq!(queue.wants_refill(), Some(gap(15, 20)));
    queue.refill(&refill([], 17));
    assert_eq!((queue.wants_refill(), queue.cursor()), (None, None));
    assert!(!queue.offer(19));
    assert_eq!(queue.wants_refill(), Some(gap(17, 20)));
    assert!(!queue.offer(20));
    queue.refill(&refill([19], 19));
    assert_eq!(queue.wants_refill(), Some(gap(19, 20)));
    queue.refill(&refill([20], 20));
    assert!(queue.offer(21));
    assert_eq!(take_all(&mut queue, at(0)), [19, 20, 21]);
}

#[test]
fn the_cursor_stays_below_what_is_not_recorded() {
    let mut queue = lane_with([5, 8, 9]);
    assert_eq!(queue.cursor(), Some(4));
    take_all(&mut queue, at(0));
    finish(&mut queue, 8, Verdict::Well, None);
    assert_eq!(queue.cursor(), Some(4));
    finish(&mut queue, 5, Verdict::Badly, Some(retry(50, 70)));
    assert_eq!(queue.cursor(), Some(8));
    finish(&mut queue, 9, Verdict::Well, None);
    assert_eq!(queue.cursor(), None);
    assert!(queue.open_records().eq([70]));
    queue.next(at(50), false);
    assert!(queue.open_records().eq([70]), "under way is still open");
    assert_eq!(queue.cursor(), None, "a retry is no first attempt");
}

#[test]
fn a_failing_endpoint_with_much_to_try_again_is_only_probed() {
    let mut queue = lane_with([1, 2, 3]);
    for sequence in 0..100 {
        queue.remember(1_000 + sequence, retry(9_999, sequence));
    }
    queue.answered(Verdict::Badly, at(0));
    assert_eq!(take_all(&mut queue, at(0)), [1]);
    queue.answered(Verdict::Badly, at(0));
    assert_eq!(queue.wake(false), Some(at(60)));
    assert_eq!(take_all(&mut queue, at(59)), [0_u64; 0]);
    assert_eq!(take_all(&mut queue, at(60)), [2]);
    queue.answered(Verdict::Well, at(60));
    assert_eq!(take_all(&mut queue, at(60)), [3], "it answers again");
}

#[test]
fn an_endpoint_that_answers_now_and_then_has_a_bounded_number_of_retries() {
    let mut queue = lane_with(1..=4_000);
    let (mut succeeds, mut made) = (false, 0);
    while let Some(work) = queue.next(at(0), false) {
        made += 1;
        let (answer, again) = if succeeds {
            (Verdict::Well, None)
        } else {
            (Verdict::Badly, Some(retry(9_999, made)))
        };
        succeeds = !succeeds;
        finish(&mut queue, work.sequence, answer, again);
    }
    let most = BOUNDS.pending * 2;
    assert!((most..=most + 1).contains(&queue.retrying()));
    assert_eq!(queue.wake(false), Some(at(60)), "it is probed");
    // It has recovered: each success lets one more go.
    let made = usize::try_from(made).unwrap();
    let mut rest = 0;
    while let Some(work) = queue.next(at(60), false) {
        finish(&mut queue, work.sequence, Verdict::Well, None);
        rest += 1;
    }
    assert_eq!(made + rest, 4_000);
    assert_eq!(take_all(&mut queue, at(9_999)).len(), BOUNDS.concurrency);
}

#[test]
fn when_all_lanes_are_crowded_a_failing_one_is_held_sooner() {
    let mut queue = lane_with([1, 2]);
    queue.remember(1_000, retry(9_999, 1));
    queue.answered(Verdict::Badly, at(0));
    queue.next_probe = at(10);
    assert_eq!(queue.next(at(0), true), None);
    assert!(queue.next(at(0), false).is_some());
}

#[test]
fn only_failures_for_long_are_hopeless() {
    let give_up_after = Duration::from_secs(100);
    let mut queue = lane_with([]);
    queue.answered(Verdict::Badly, at(0));
    queue.answered(Verdict::Overwhelmed, at(50));
    assert!(!queue.is_hopeless(at(99), give_up_after));
    assert!(queue.is_hopeless(at(100), give_up_after));
    queue.answered(Verdict::NotSent, at(100));
    assert!(queue.is_hopeless(at(100), give_up_after));
    queue.answered(Verdict::Well, at(100));
    assert!(!queue.is_hopeless(at(1_000), give_up_after));
}

#[test]
fn the_newer_record_of_a_delivery_counts() {
    let mut queue = lane_with([]);
    queue.remember(1, retry(50, 7));
    queue.remember(1, retry(90, 9));
    queue.remember(1, retry(20, 8));
    assert_eq!(queue.wake(false), Some(at(90)));
    assert_eq!(queue.retrying(), 1);
}
