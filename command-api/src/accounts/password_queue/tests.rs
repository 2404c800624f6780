use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

const ROOM: Room = Room {
    in_lane: 10,
    of_network: 4,
};
const LANES: [Lane; 3] = [Lane::Known, Lane::SignIn, Lane::Registration];

type Waiting = Pin<Box<dyn Future<Output = Result<Turn, NoTurn>>>>;

fn visitor(lane: Lane, network: u8) -> Visitor {
    let network = Network::of(std::net::Ipv4Addr::new(192, 0, 2, network).into());
    Visitor { lane, network }
}

/// Asks for a turn and polls once.
fn ask(queue: &PasswordQueue, lane: Lane, network: u8) -> (Waiting, Poll<Result<Turn, NoTurn>>) {
    let queue = queue.clone();
    let mut waiting: Waiting = Box::pin(async move { queue.enter(visitor(lane, network)).await });
    let seen = look(&mut waiting);
    (waiting, seen)
}

fn look(waiting: &mut Waiting) -> Poll<Result<Turn, NoTurn>> {
    waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn waits(queue: &PasswordQueue, lane: Lane, network: u8) -> Waiting {
    let (waiting, seen) = ask(queue, lane, network);
    assert!(seen.is_pending());
    waiting
}

fn takes(queue: &PasswordQueue, lane: Lane) -> Turn {
    match ask(queue, lane, 0).1 {
        Poll::Ready(Ok(turn)) => turn,
        other => panic!("no turn: {other:?}"),
    }
}

fn refused(queue: &PasswordQueue, lane: Lane, network: u8) -> NoTurn {
    match ask(queue, lane, network).1 {
        Poll::Ready(Err(none)) => none,
        other => panic!("not refused: {other:?}"),
    }
}

/// Lets each client have its turn, one after the other. Returns their names in that order.
fn served(turn: Turn, mut waiting: Vec<(&'static str, Waiting)>) -> Vec<&'static str> {
    let mut order = Vec::new();
    drop(turn);
    loop {
        let ready = waiting
            .iter_mut()
            .enumerate()
            .find_map(|(place, (_, waiting))| match look(waiting) {
                Poll::Ready(Ok(turn)) => Some((place, turn)),
                _ => None,
            });
        let Some((place, turn)) = ready else {
            return order;
        };
        order.push(waiting.remove(place).0);
        drop(turn);
    }
}

#[test]
fn who_is_known_waits_for_no_stranger() {
    let queue = PasswordQueue::new(1, ROOM);
    let stranger = takes(&queue, Lane::SignIn);
    let crowd: Vec<_> = (1..=4)
        .map(|network| waits(&queue, Lane::SignIn, network))
        .collect();
    let known = takes(&queue, Lane::Known);
    let next = ("known", waits(&queue, Lane::Known, 9));
    assert_eq!(served(known, vec![next]), ["known"]);
    drop((stranger, crowd));
}

#[test]
fn strangers_who_sign_in_and_who_register_take_turns() {
    let queue = PasswordQueue::new(1, ROOM);
    let turn = takes(&queue, Lane::SignIn);
    let mut waiting = Vec::new();
    for network in 1..=2 {
        waiting.push(("registers", waits(&queue, Lane::Registration, network)));
        waiting.push(("signs in", waits(&queue, Lane::SignIn, network)));
    }
    let order = served(turn, waiting);
    assert_eq!(order, ["signs in", "registers", "signs in", "registers"]);
}

#[test]
fn networks_take_turns() {
    let queue = PasswordQueue::new(1, ROOM);
    let turn = takes(&queue, Lane::SignIn);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(("crowd", waits(&queue, Lane::SignIn, 1)));
    }
    waiting.push(("ada", waits(&queue, Lane::SignIn, 2)));
    assert_eq!(refused(&queue, Lane::SignIn, 1), NoTurn::TooManyOfOne);
    let order = served(turn, waiting);
    assert_eq!(order, ["crowd", "ada", "crowd", "crowd", "crowd"]);
}

#[test]
fn a_newcomer_finds_room_where_one_network_has_most_of_it() {
    let queue = PasswordQueue::new(1, ROOM);
    let turn = takes(&queue, Lane::SignIn);
    let mut waiting: Vec<Waiting> = Vec::new();
    for network in [1, 1, 1, 1, 2, 2, 2, 3, 3, 3] {
        waiting.push(waits(&queue, Lane::SignIn, network));
    }
    let newcomer = waits(&queue, Lane::SignIn, 4);
    assert!(matches!(
        look(&mut waiting[3]),
        Poll::Ready(Err(NoTurn::TooManyOfOne))
    ));
    // The others have three each: a third one more would take from its equals.
    assert_eq!(refused(&queue, Lane::SignIn, 3), NoTurn::TooMany);
    // Registrations fill half of their lane, and no other.
    for network in 1..=5 {
        waiting.push(waits(&queue, Lane::Registration, network));
    }
    assert_eq!(refused(&queue, Lane::Registration, 6), NoTurn::TooMany);
    drop(takes(&queue, Lane::Known));
    drop((turn, newcomer, waiting));
    drop(takes(&queue, Lane::SignIn));
}

proptest! {
    /// Whatever comes and goes: never more turns than places, none lost, and no client waits while
    /// one is free.
    #[test]
    fn every_turn_is_held_or_free_or_handed_over(
        places in 1..4_usize,
        steps in prop::collection::vec((0..4_u8, 0..3_usize, 0..5_u8, 0..20_usize), 0..150),
    ) {
        let queue = PasswordQueue::new(places, ROOM);
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for (step, lane, network, which) in steps {
            match step {
                0 if !held.is_empty() => drop(held.remove(which % held.len())),
                1 if !waiting.is_empty() => drop(waiting.remove(which % waiting.len())),
                _ => match ask(&queue, LANES[lane], network) {
                    (_, Poll::Ready(Ok(turn))) => held.push(turn),
                    (_, Poll::Ready(Err(_))) => {}
                    (coming, Poll::Pending) => waiting.push((LANES[lane].is_known(), coming)),
                },
            }
            waiting.retain_mut(|(_, coming)| match look(coming) {
                Poll::Ready(Ok(turn)) => {
                    held.push(turn);
                    false
                }
                Poll::Ready(Err(_)) => false,
                Poll::Pending => true,
            });
            for is_known in [true, false] {
                let state = queue.state();
                let free = if is_known { state.known.free } else { state.strangers.free };
                let of_these = held.iter().filter(|turn: &&Turn| turn.is_known == is_known);
                prop_assert_eq!(free + of_these.count(), places);
                let wait = waiting.iter().filter(|(known, _)| *known == is_known).count();
                prop_assert!(free == 0 || wait == 0, "{} wait", wait);
            }
        }
    }
}
