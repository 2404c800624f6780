use super::*;

const BOUNDS: Bounds = Bounds {
    concurrency: 4,
    pending: 100,
};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn lane_with(sequences: impl IntoIterator<Item = u64>) -> Lane {
    let mut lane = Lane::new(BOUNDS, 0);
    for sequence in sequences {
        lane.offer(sequence);
    }
    lane
}

fn take_all(lane: &mut Lane, now: DateTime<Utc>) -> Vec<u64> {
    std::iter::from_fn(|| lane.next(now, false))
        .map(|work| work.sequence)
        .collect()
}

fn finish(lane: &mut Lane, sequence: u64, answer: Answer, retry: Option<Retry>) {
    lane.answered(answer, at(0));
    lane.recorded(sequence, retry);
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
    let mut lane = lane_with(1..=9);
    assert_eq!(take_all(&mut lane, at(0)), [1, 2, 3, 4]);
    finish(&mut lane, 2, Answer::Well, None);
    assert_eq!(take_all(&mut lane, at(0)), [5]);
}

#[test]
fn an_event_is_taken_once() {
    let mut lane = lane_with([3, 3, 2]);
    assert_eq!(take_all(&mut lane, at(0)), [3]);
}

#[test]
fn a_retry_waits_until_it_is_due_and_knows_its_past() {
    let mut lane = lane_with([1]);
    lane.next(at(0), false);
    finish(&mut lane, 1, Answer::Badly, Some(retry(5, 77)));
    assert_eq!(lane.next(at(4), false), None);
    assert_eq!(lane.wake(false), Some(at(5)));
    let known = Known::Attempted {
        attempts: 1,
        recorded: 77,
    };
    assert_eq!(lane.next(at(5), false), Some(Work { sequence: 1, known }));
    assert_eq!(lane.wake(false), None);
}

#[test]
fn retries_and_first_attempts_take_turns() {
    let mut lane = lane_with(1..=3);
    for (sequence, recorded) in [(11, 1), (12, 2), (13, 3)] {
        lane.remember(sequence, retry(0, recorded));
    }
    assert_eq!(take_all(&mut lane, at(1)), [1, 11, 2, 12]);
}

#[test]
fn an_overwhelmed_endpoint_gets_less_and_one_that_recovers_gets_more() {
    let mut lane = lane_with(1..=20);
    assert_eq!(take_all(&mut lane, at(0)).len(), 4);
    for sequence in 1..=4 {
        finish(&mut lane, sequence, Answer::Overwhelmed, None);
    }
    assert_eq!(take_all(&mut lane, at(0)), [5]);
    finish(&mut lane, 5, Answer::Well, None);
    assert_eq!(take_all(&mut lane, at(0)), [6, 7]);
}

/// Makes and finishes attempts until at most `left` wait; says which.
fn drain(lane: &mut Lane, left: usize) -> Vec<u64> {
    let mut done = Vec::new();
    while lane.waiting() > left {
        for sequence in take_all(lane, at(0)) {
            finish(lane, sequence, Answer::Well, None);
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
    let mut lane = lane_with(1..=many);
    assert_eq!(lane.waiting(), MAX_BACKLOG);
    assert_eq!(lane.wants_refill(), None, "there is no room yet");
    let mut done = drain(&mut lane, LOW_BACKLOG - 1);
    assert_eq!(lane.wants_refill(), Some(gap(held, 0)));
    assert_eq!(lane.wants_refill(), None, "one refill at a time");
    lane.offer(many + 1);
    lane.refill(&refill(held + 1..=many, many));
    done.extend(drain(&mut lane, 0));
    let gap_left = Some(gap(many, 0));
    assert_eq!(lane.wants_refill(), gap_left, "one more came meanwhile");
    lane.refill(&refill([many + 1], many + 1));
    assert_eq!(lane.wants_refill(), None);
    lane.offer(many + 2);
    done.extend(drain(&mut lane, 0));
    assert_eq!(done, (1..=many + 2).collect::<Vec<_>>());
}

#[test]
fn a_lane_that_was_taken_over_starts_in_the_log_and_asks_what_was_done() {
    let mut lane = Lane::resume(BOUNDS, 10, 20, 15);
    assert!(!lane.offer(21));
    assert_eq!(lane.next(at(0), false), None);
    assert_eq!(lane.cursor(), Some(10));
    assert_eq!(lane.wants_refill(), Some(gap(10, 20)));
    let mut found = refill([15, 21], 21);
    found.waiting = vec![(12, retry(0, 7))];
    lane.refill(&found);
    assert_eq!(take_all(&mut lane, at(1)), [15, 12, 21]);
    assert!(lane.offer(22), "it is no longer behind");
}

#[test]
fn the_cursor_stays_below_what_is_not_recorded() {
    let mut lane = lane_with([5, 8, 9]);
    assert_eq!(lane.cursor(), Some(4));
    take_all(&mut lane, at(0));
    finish(&mut lane, 8, Answer::Well, None);
    assert_eq!(lane.cursor(), Some(4));
    finish(&mut lane, 5, Answer::Badly, Some(retry(50, 70)));
    assert_eq!(lane.cursor(), Some(8));
    finish(&mut lane, 9, Answer::Well, None);
    assert_eq!(lane.cursor(), None);
    assert_eq!(lane.oldest_record(), Some(70));
    lane.next(at(50), false);
    assert_eq!(lane.oldest_record(), Some(70), "under way is still open");
    assert_eq!(lane.cursor(), None, "a retry is no first attempt");
}

#[test]
fn a_failing_endpoint_with_much_to_try_again_is_only_probed() {
    let mut lane = lane_with([1, 2, 3]);
    for sequence in 0..100 {
        lane.remember(1_000 + sequence, retry(9_999, sequence));
    }
    lane.answered(Answer::Badly, at(0));
    assert_eq!(take_all(&mut lane, at(0)), [1]);
    lane.answered(Answer::Badly, at(0));
    assert_eq!(lane.wake(false), Some(at(60)));
    assert_eq!(take_all(&mut lane, at(59)), [0_u64; 0]);
    assert_eq!(take_all(&mut lane, at(60)), [2]);
    lane.answered(Answer::Well, at(60));
    assert_eq!(take_all(&mut lane, at(60)), [3], "it answers again");
}

#[test]
fn when_all_lanes_are_crowded_a_failing_one_is_held_sooner() {
    let mut lane = lane_with([1, 2]);
    lane.remember(1_000, retry(9_999, 1));
    lane.answered(Answer::Badly, at(0));
    lane.next_probe = at(10);
    assert_eq!(lane.next(at(0), true), None);
    assert!(lane.next(at(0), false).is_some());
}

#[test]
fn only_failures_for_long_are_hopeless() {
    let patience = Duration::from_secs(100);
    let mut lane = lane_with([]);
    lane.answered(Answer::Badly, at(0));
    lane.answered(Answer::Overwhelmed, at(50));
    assert!(!lane.is_hopeless(at(99), patience));
    assert!(lane.is_hopeless(at(100), patience));
    lane.answered(Answer::Unasked, at(100));
    assert!(lane.is_hopeless(at(100), patience));
    lane.answered(Answer::Well, at(100));
    assert!(!lane.is_hopeless(at(1_000), patience));
}

#[test]
fn the_newer_record_of_a_delivery_counts() {
    let mut lane = lane_with([]);
    lane.remember(1, retry(50, 7));
    lane.remember(1, retry(90, 9));
    lane.remember(1, retry(20, 8));
    assert_eq!(lane.wake(false), Some(at(90)));
    assert_eq!(lane.retrying(), 1);
}
