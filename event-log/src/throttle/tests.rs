use proptest::prelude::*;

use super::*;

const A: Party = Party(1);
const B: Party = Party(2);
const MS: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(20);

/// A state with its own clock.
struct Time {
    state: State,
    now: Instant,
}

impl Time {
    fn new() -> Self {
        Self {
            state: State::new(&LogSettings::at("")),
            now: Instant::now(),
        }
    }

    /// Lets `times` times ten milliseconds pass; the server answers once in each.
    fn pass(&mut self, times: u32, answer: Duration) {
        for _ in 0..times {
            self.now += TICK;
            self.state.answered(answer, self.now);
        }
    }

    /// Writes messages one by one as far as admitted; returns how many.
    fn write(&mut self, party: Party, most: u64) -> u64 {
        let mut written = 0;
        while written < most && self.state.admits(Resource::Messages, party, self.now) {
            self.state.messages.count(party, 1.0, self.now);
            written += 1;
        }
        written
    }

    /// What each party writes in `seconds` if it wants this many messages every ten milliseconds.
    fn run<const N: usize>(
        &mut self,
        seconds: u32,
        wants: [(Party, u64); N],
        answer: Duration,
    ) -> [u64; N] {
        let mut written = [0; N];
        for _ in 0..seconds * 100 {
            self.pass(1, answer);
            for (nth, (party, wanted)) in wants.into_iter().enumerate() {
                written[nth] += self.write(party, wanted);
            }
        }
        written
    }
}

/// A log that was quick, and has been slow for some seconds.
fn slow_log() -> Time {
    let mut time = Time::new();
    time.pass(10, MS);
    time.pass(500, SLOW);
    time
}

fn least() -> u64 {
    LogSettings::at("").log_least_messages
}

#[test]
fn a_party_that_wants_much_gets_the_least_pace_beside_one_that_wants_little() {
    let [little, much] = slow_log().run(5, [(A, 1), (B, 1_000)], SLOW);
    assert_eq!(little, 500);
    let expected = least() * 5..least() * 6;
    assert!(expected.contains(&much), "{much} of {expected:?}");
}

#[test]
fn a_party_keeps_its_usual_pace_above_the_least_beside_those_that_want_all() {
    let mut time = slow_log();
    time.run(30, [(A, 7)], SLOW);
    let [steady, little, much] = time.run(20, [(A, 7), (B, 1), (Party(3), 1_000)], SLOW);
    assert_eq!((steady, little), (14_000, 2_000));
    let expected = least() * 20..least() * 24;
    assert!(expected.contains(&much), "{much} of {expected:?}");
}

#[test]
fn what_could_not_be_asked_for_in_a_stall_is_made_good() {
    let mut time = slow_log();
    time.run(20, [(A, 5), (B, 1), (Party(3), 1_000)], SLOW);
    time.pass(60, SLOW);
    // What gathered in the six tenths of a second is written at once, then the usual pace.
    let mut waiting = 300;
    let mut passed = 0;
    while waiting > 0 {
        time.pass(1, SLOW);
        time.write(B, 1);
        time.write(Party(3), 1_000);
        waiting += 5;
        waiting -= time.write(A, waiting);
        passed += 1;
    }
    assert!(passed < 100, "{passed} hundredths of a second");
}

#[test]
fn those_who_all_ask_for_much_are_not_held_back() {
    let mut time = slow_log();
    // The first party asks for little at first.
    time.run(3, [(A, 500), (B, 500)], SLOW);
    let written = time.run(1, [(A, 500), (B, 500)], SLOW);
    assert_eq!(written, [50_000, 50_000]);
}

#[test]
fn a_party_that_is_alone_is_not_held_back() {
    assert_eq!(slow_log().run(1, [(A, 500)], SLOW), [50_000]);
}

#[test]
fn nobody_is_held_back_while_the_log_is_quick() {
    let written = Time::new().run(2, [(A, 1), (B, 500)], MS);
    assert_eq!(written, [200, 100_000]);
}

#[test]
fn a_log_that_is_slow_by_nature_holds_nobody_back() {
    let written = Time::new().run(2, [(A, 1), (B, 500)], SLOW);
    assert_eq!(written, [200, 100_000]);
}

#[test]
fn the_pace_rises_again() {
    let mut time = slow_log();
    assert!(time.state.messages.rate <= time.state.messages.least);
    time.pass(1_500, MS);
    assert!(time.state.messages.rate >= time.state.messages.least * Buckets::MOST);
}

#[test]
fn what_is_owed_is_forgotten_once_it_is_paid() {
    let mut time = slow_log();
    for party in 0..1_000 {
        time.state.messages.count(Party(party), 1e9, time.now);
        time.state.bytes.count(Party(party), 1e9, time.now);
    }
    time.pass(1_100, SLOW);
    assert!(time.state.messages.owed.is_empty() && time.state.bytes.owed.is_empty());
}

#[test]
fn habits_are_forgotten_of_those_who_ask_for_little_or_nothing_any_more() {
    let mut time = slow_log();
    for party in 0..1_000 {
        time.state.messages.count(Party(party), 1e4, time.now);
    }
    time.pass(10_000, SLOW);
    time.run(2, [(A, 1)], SLOW);
    let known = time.state.messages.habits.len();
    assert!(known <= 1, "{known}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_until_it_may_go_on() {
    let throttle = Throttle::new(&LogSettings::at(""));
    throttle.answered(MS);
    for _ in 0..1_000 {
        tokio::time::advance(STEP).await;
        throttle.answered(MS * 50);
    }
    throttle.count(Resource::Bytes, A, least() * 1_024);
    assert!(throttle.admits(Resource::Messages, B));
    let begun = Instant::now();
    let someone_is_there = async {
        loop {
            tokio::time::sleep(MS * 100).await;
            assert!(throttle.admits(Resource::Messages, B));
        }
    };
    tokio::select! {
        () = throttle.until_read(A) => {}
        () = someone_is_there => {}
    }
    let waited = begun.elapsed();
    assert!(waited > MS * 500 && waited < MS * 1_000, "{waited:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_gets_less_than_the_least(
        answers in prop::collection::vec(1_u32..100, 1..40),
        others in prop::collection::vec(0_u64..200, 40),
    ) {
        let mut time = slow_log();
        let (mut written, mut ticks) = (0, 0);
        for (answer, other) in answers.into_iter().zip(others) {
            for _ in 0..10 {
                time.pass(1, MS * answer);
                time.write(B, other);
                time.write(Party(3), 1);
                written += time.write(A, 1_000);
                ticks += 1;
            }
        }
        prop_assert!(written >= least() * ticks / 100, "{written} in {ticks}");
    }
}
