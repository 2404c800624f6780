use super::*;

fn org(name: &str) -> OrgId {
    OrgId::from(name)
}

/// A position of a person in the partition of that number.
fn one(name: &str, person: u16, sequence: u64) -> DeferredPosition {
    DeferredPosition {
        org: org(name),
        account: AccountId(person.into()),
        partition: person,
        sequence,
    }
}

/// Defers positions of organizations' persons.
fn deferred(positions: &[(&str, u16, u64)]) -> DeferredPositions {
    let mut deferred = DeferredPositions::default();
    for (name, person, sequence) in positions {
        deferred.push(one(name, *person, *sequence));
    }
    deferred
}

fn again(person: u16, positions: &[u64]) -> Again {
    Again {
        account: AccountId(person.into()),
        partition: person,
        positions: positions.to_vec(),
    }
}

#[test]
fn a_persons_positions_are_considered_again_in_their_order_until_none_waits() {
    let mut deferred = deferred(&[("a", 1, 5), ("a", 2, 6), ("a", 1, 7)]);
    assert_eq!(deferred.of(AccountId(1)), BTreeSet::from([org("a")]));
    let round = deferred.next().unwrap();
    assert_eq!(round.persons, [again(1, &[5, 7]), again(2, &[6])]);
    assert_eq!(deferred.next(), None, "one round of it at a time");
    deferred.push(one("a", 1, 9));
    deferred.ended(&org("a"), &[(AccountId(1), 5), (AccountId(2), 6)]);
    assert!(deferred.of(AccountId(2)).is_empty());
    assert_eq!(deferred.next().unwrap().persons, [again(1, &[7, 9])]);
    deferred.ended(&org("a"), &[(AccountId(1), 9)]);
    assert_eq!(deferred.next(), None);
    assert!(deferred.by_org.is_empty() && deferred.orgs.is_empty());
    assert_eq!((deferred.positions, deferred.bytes()), (0, 0));
}

#[test]
fn organizations_and_their_persons_take_turns() {
    let mut positions: Vec<(&str, u16, u64)> = (1..=100).map(|one| ("a", one, 1)).collect();
    positions.extend([("b", 1, 2), ("c", 1, 3)]);
    let mut deferred = deferred(&positions);
    let mut firsts = Vec::new();
    for _ in 0..6 {
        let round = deferred.next().unwrap();
        deferred.ended(&round.org, &[]);
        firsts.push((round.org.into_string(), round.persons[0].account.0));
    }
    let all = [("a", 1), ("b", 1), ("c", 1), ("a", 65), ("b", 1), ("c", 1)];
    assert_eq!(firsts, all.map(|(name, person)| (name.to_owned(), person)));
    let round = deferred.next().unwrap();
    let persons: BTreeSet<u64> = round.persons.iter().map(|again| again.account.0).collect();
    assert_eq!((round.persons.len(), persons.len()), (PERSONS, PERSONS));
    assert!(persons.contains(&29) && !persons.contains(&1));
}

#[test]
fn deferred_positions_are_held_by_partition_and_dropped_with_it() {
    let mut deferred = deferred(&[("a", 1, 5), ("b", 1, 4), ("b", 2, 6)]);
    assert_eq!(deferred.firsts(), BTreeMap::from([(1, 4), (2, 6)]));
    let round = deferred.next().unwrap();
    assert_eq!(round.org, org("a"));
    deferred.retain(|partition| partition == 2);
    assert_eq!(deferred.firsts(), BTreeMap::from([(2, 6)]));
    assert!(deferred.of(AccountId(1)).is_empty());
    assert_eq!(deferred.positions, 1);
    // The person is ours again before the round has ended.
    deferred.push(one("a", 1, 8));
    assert_eq!(deferred.next().unwrap().org, org("b"));
    assert_eq!(deferred.next(), None);
    deferred.ended(&round.org, &[]);
    assert_eq!(deferred.next().unwrap().persons, [again(1, &[8])]);
}

#[test]
fn deferred_positions_are_bounded() {
    let mut deferred = DeferredPositions::default();
    for sequence in 0..MOST as u64 {
        assert!(!deferred.is_full());
        let person = u16::try_from(sequence % 100).unwrap();
        deferred.push(one("a", person, sequence));
    }
    assert!(deferred.is_full());
    let round = deferred.next().unwrap();
    assert!(
        round
            .persons
            .iter()
            .all(|again| again.positions.len() == POSITIONS)
    );
    deferred.ended(&round.org, &[(AccountId(0), 0)]);
    assert!(!deferred.is_full());
}
