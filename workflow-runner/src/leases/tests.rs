//! Against the real server: every test has buckets of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use event_log::{EventLog, Keyring, LogSettings};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{Group, LeaseGuard, Work, partition_of};

/// Of all kinds of work together.
const PARTITIONS: u16 = 12;
const TTL: Duration = Duration::from_millis(900);
const LOOK: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn log() -> EventLog {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: format!("leases-{}-", Uuid::new_v4().simple()),
        ..LogSettings::at(url)
    };
    EventLog::connect(&settings, Keyring::from_master(&[7; 32]))
        .await
        .unwrap()
}

async fn join(log: &EventLog) -> Group {
    Group::sharing(log, PARTITIONS, TTL).await.unwrap()
}

/// Waits until each of `all` owns as many partitions as given; meanwhile none has two owners.
async fn until_shared(all: &[(&Group, usize)]) {
    let shared = async {
        while !all
            .iter()
            .all(|(group, count)| owned(group).len() == *count)
        {
            let mut seen = BTreeSet::new();
            // An update may be delivered after the lease has expired, so nobody relies on it alone.
            for (group, _) in all {
                let mut surely = (0..PARTITIONS).filter(|number| group.state.owns(*number));
                assert!(surely.all(|number| seen.insert(number)));
            }
            sleep(LOOK).await;
        }
    };
    timeout(TIMEOUT, shared)
        .await
        .expect("the partitions are not shared as they should be");
}

/// The numbers of all partitions that somebody owns.
fn owned(group: &Group) -> BTreeSet<u16> {
    let of_each = Work::ALL.into_iter().flat_map(|work| {
        let owned = group.leases(work).owned().borrow().as_ref().clone();
        owned
            .into_iter()
            .map(move |partition| work.number(partition))
    });
    of_each.collect()
}

#[tokio::test]
async fn one_alone_owns_everything() {
    let log = log().await;
    let alone = join(&log).await;
    until_shared(&[(&alone, 12)]).await;
    assert!((0..PARTITIONS).all(|number| alone.state.owns(number)));
    assert!(!alone.state.owns(PARTITIONS));
}

#[tokio::test]
async fn partitions_are_shared_evenly_and_each_has_one_owner() {
    let log = log().await;
    let first = join(&log).await;
    until_shared(&[(&first, 12)]).await;
    let second = join(&log).await;
    let third = join(&log).await;
    until_shared(&[(&first, 4), (&second, 4), (&third, 4)]).await;
    let mut together = owned(&first);
    together.extend(owned(&second));
    together.extend(owned(&third));
    assert_eq!(together.len(), 12);
}

#[tokio::test]
async fn each_has_its_share_of_every_kind_of_work() {
    let log = log().await;
    let (first, second) = (join(&log).await, join(&log).await);
    until_shared(&[(&first, 6), (&second, 6)]).await;
    for work in Work::ALL {
        let [one, other] = [&first, &second].map(|group| group.leases(work));
        let partitions = one.owned().borrow().len();
        assert!((1..=2).contains(&partitions), "{work:?}: {partitions}");
        assert!((0..3).all(|partition| one.owns(partition) != other.owns(partition)));
    }
}

#[tokio::test]
async fn what_the_dead_owned_passes_to_the_living() {
    let log = log().await;
    let (first, second) = (join(&log).await, join(&log).await);
    until_shared(&[(&first, 6), (&second, 6)]).await;
    let died = Instant::now();
    drop(second);
    until_shared(&[(&first, 12)]).await;
    assert!(died.elapsed() < TTL * 2, "it took {:?}", died.elapsed());
}

#[tokio::test]
async fn a_goodbye_passes_everything_on_at_once() {
    let log = log().await;
    let (first, second) = (join(&log).await, join(&log).await);
    until_shared(&[(&first, 6), (&second, 6)]).await;
    second.leave().await;
    assert!(owned(&second).is_empty());
    assert!((0..PARTITIONS).all(|number| !second.state.owns(number)));
    let said = Instant::now();
    until_shared(&[(&first, 12)]).await;
    assert!(said.elapsed() < TTL, "it took {:?}", said.elapsed());
}

#[tokio::test]
async fn a_newcomer_gets_what_the_dead_and_the_departed_have_left() {
    let log = log().await;
    let (dead, departed) = (join(&log).await, join(&log).await);
    until_shared(&[(&dead, 6), (&departed, 6)]).await;
    drop(dead);
    departed.leave().await;
    let newcomer = join(&log).await;
    until_shared(&[(&newcomer, 12)]).await;
}

/// A member that works in everything it owns and must hand half of it over, the work, and the one
/// that waits for it.
async fn handing_over(log: &EventLog) -> (Group, Vec<LeaseGuard>, Group) {
    let first = join(log).await;
    until_shared(&[(&first, 12)]).await;
    let work = (0..PARTITIONS).filter_map(|number| first.guard(number));
    let work = work.collect();
    let second = join(log).await;
    until_shared(&[(&first, 6)]).await;
    (first, work, second)
}

#[tokio::test]
async fn a_planned_handing_over_waits_for_work_under_way() {
    let log = log().await;
    let (first, work, second) = handing_over(&log).await;
    // Work being handed over is not started again here, and not yet there.
    assert!((6..PARTITIONS).all(|number| first.guard(number).is_none()));
    assert!(owned(&second).is_empty());
    drop(work);
    until_shared(&[(&first, 6), (&second, 6)]).await;
}

#[tokio::test]
async fn leases_that_cannot_be_renewed_run_out_and_are_won_back() {
    let log = log().await;
    let group = join(&log).await;
    until_shared(&[(&group, 12)]).await;
    group.state.expire();
    assert!(!group.state.owns(0) && group.guard(0).is_none());
    let mut owned = group.leases(Work::Runs).owned();
    let lost = owned.wait_for(|owned| owned.is_empty());
    timeout(TIMEOUT, lost)
        .await
        .expect("the leases were not given up")
        .unwrap();
    until_shared(&[(&group, 12)]).await;
    assert!(group.state.owns(0));
}

#[tokio::test]
async fn of_what_ran_out_each_takes_a_share_and_nothing_is_left_to_nobody() {
    let log = log().await;
    // Work keeps the first from handing over anything before its leases run out.
    let (first, _work, second) = handing_over(&log).await;
    first.state.expire();
    until_shared(&[(&first, 6), (&second, 6)]).await;
}

#[test]
fn an_id_belongs_to_the_same_partition_for_ever() {
    let found: Vec<u16> = ["", "a", "run-1", "0198f3a2-0000-7000-8000-000000000001"]
        .map(partition_of)
        .to_vec();
    assert_eq!(found, PARTITIONS_FOR_EVER);
}

const PARTITIONS_FOR_EVER: [u16; 4] = [1, 0, 22, 4];

#[test]
fn ids_spread_over_all_partitions() {
    let mut counts = [0_u32; 32];
    for number in 0..32_000_u128 {
        let id = Uuid::from_u128(number).to_string();
        counts[usize::from(partition_of(&id))] += 1;
    }
    assert!(
        counts.iter().all(|count| (800..1_200).contains(count)),
        "{counts:?}"
    );
}
