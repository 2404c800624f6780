use super::*;

fn places(most: usize, most_per_address: usize) -> Arc<Places> {
    let proxies = "10.0.0.0/8".parse().unwrap();
    Places::new(most, most_per_address, proxies, Duration::from_hours(1))
}

/// As above, with connections that can be shed at once.
fn restless(most: usize, most_per_address: usize) -> Arc<Places> {
    let proxies = "10.0.0.0/8".parse().unwrap();
    Places::new(most, most_per_address, proxies, Duration::ZERO)
}

fn take(places: &Arc<Places>, address: &str) -> Result<ConnectionPlace, Refused> {
    places.take(address.parse().unwrap(), &Life::new())
}

fn taken_from(places: &Arc<Places>, address: &str) -> (Vec<ConnectionPlace>, Refused) {
    let mut taken = Vec::new();
    loop {
        match take(places, address) {
            Ok(place) => taken.push(place),
            Err(refused) => return (taken, refused),
        }
    }
}

#[test]
fn an_address_has_its_share_and_others_theirs() {
    let places = places(100, 10);
    let (one, refused) = taken_from(&places, "192.0.2.1");
    assert_eq!((one.len(), refused), (10, Refused::Share));
    assert!(take(&places, "192.0.2.2").is_ok());
    drop(one);
    assert!(take(&places, "192.0.2.1").is_ok());
    assert_eq!(places.taken().connections.len(), 0);
    assert!(places.taken().by_address.is_empty());
}

#[test]
fn however_many_are_greedy_the_next_finds_a_place() {
    let places = places(1_000, 1_000);
    let mut all = Vec::new();
    for n in 1..=8 {
        let (taken, refused) = taken_from(&places, &format!("192.0.2.{n}"));
        assert_eq!(refused, Refused::Share);
        assert!(!taken.is_empty());
        all.push(taken);
    }
    assert_eq!(all[0].len(), 500);
    assert!(take(&places, "192.0.2.9").is_ok());
}

#[test]
fn a_v6_network_is_one_address() {
    let places = places(100, 10);
    let (_one, _) = taken_from(&places, "2001:db8:1:2::1");
    let neighbour = take(&places, "2001:db8:1:2:ffff::1");
    assert_eq!(neighbour.err(), Some(Refused::Share));
}

#[test]
fn behind_a_proxy_a_clients_requests_are_counted() {
    let places = places(100, 2);
    let proxy = "10.1.2.3".parse().unwrap();
    let request = |client: &str| places.take_for(client.parse().unwrap(), proxy);
    let held: Vec<_> = (0..2).map(|_| request("192.0.2.1").unwrap()).collect();
    assert_eq!(request("192.0.2.1").err(), Some(Refused::Share));
    assert!(request("192.0.2.2").is_ok_and(|count| count.is_some()));
    assert!(request("10.1.2.3").is_ok_and(|count| count.is_none()));
    drop(held);
    assert!(request("192.0.2.1").is_ok());
}

#[test]
fn proxies_and_this_machine_are_bounded_by_the_process_alone() {
    for address in ["10.1.2.3", "127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let (taken, refused) = taken_from(&places(100, 10), address);
        assert_eq!((taken.len(), refused), (100, Refused::Full), "{address}");
    }
}

#[test]
fn where_all_is_taken_the_longest_rest_of_who_has_most_gives_way() {
    let places = restless(5, 4);
    let few = take(&places, "192.0.2.1").unwrap();
    let many: Vec<_> = (0..2)
        .map(|_| take(&places, "192.0.2.2").unwrap())
        .collect();
    let (busy, more) = (Life::new(), "192.0.2.3".parse().unwrap());
    let _under_way = busy.begin();
    let used = places.take(more, &busy).unwrap();
    let other = take(&places, "192.0.2.4").unwrap();
    let newcomer = take(&places, "192.0.2.5").unwrap();
    let given: Vec<_> = many
        .iter()
        .map(|place| place.ended().is_cancelled())
        .collect();
    assert_eq!(given, [true, false], "the first of those who have two");
    for place in [&few, &used, &other, &newcomer] {
        assert!(!place.ended().is_cancelled());
    }
    assert_eq!(places.taken().connections.len(), 5);
    drop((few, many, used, other, newcomer));
    let taken = places.taken();
    assert!(taken.connections.is_empty() && taken.by_address.is_empty());
}

#[test]
fn who_has_fewer_puts_one_in_the_place_of_who_has_more() {
    let places = restless(6, 4);
    let many: Vec<_> = (0..3)
        .map(|_| take(&places, "192.0.2.1").unwrap())
        .collect();
    let few: Vec<_> = (0..2)
        .map(|_| take(&places, "192.0.2.2").unwrap())
        .collect();
    let other = take(&places, "192.0.2.3").unwrap();
    let second = take(&places, "192.0.2.3").unwrap();
    assert!(many[0].ended().is_cancelled() && !second.ended().is_cancelled());
    // Two each: an address with a third one would hold more than the others.
    assert_eq!(take(&places, "192.0.2.2").err(), Some(Refused::Full));
    assert_eq!(places.taken().connections.len(), 6);
    drop((many, few, other, second));
}

#[test]
fn what_is_used_gives_way_to_nobody() {
    let places = restless(2, 2);
    let lives = [Life::new(), Life::new()];
    let under_way: Vec<_> = lives.iter().map(Life::begin).collect();
    let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let _one = places.take(one, &lives[0]).unwrap();
    let _other = places.take(other, &lives[1]).unwrap();
    assert_eq!(take(&places, "192.0.2.3").err(), Some(Refused::Full));
    assert_eq!(take(&places, "192.0.2.1").err(), Some(Refused::Full));
    drop(under_way);
    // Idle connections are not searched for all the time.
    assert_eq!(take(&places, "192.0.2.3").err(), Some(Refused::Full));
    places.taken().looked = None;
    assert!(take(&places, "192.0.2.3").is_ok());
}
