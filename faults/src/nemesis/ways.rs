//! What the nemesis does to the network paths between services and servers.

use std::time::Instant;

use local_servers::{Passage, Way};

use super::{COUNTING, Deed, Nemesis, SERVICES};
use crate::network::Side;

/// Number of times that one deed cuts connections.
const CUTS: usize = 12;

impl Nemesis {
    /// Disturbs the paths of some services for a while.
    pub(super) async fn hurt_ways(&mut self, deed: Deed) {
        let began = Instant::now();
        let (services, side) = (self.some_services(), self.side());
        let whom = self.whom(&services, side);
        let way = if deed == Deed::Delay {
            let by = self.dice.millis(20..400);
            self.done.hurt(format!("{whom} by {} ms", by.as_millis()));
            Way::far(by)
        } else {
            self.done.hurt(whom);
            way_of(deed)
        };
        self.network.set(&services, side, way);
        match deed {
            Deed::CutAnswers => self.cut_answers(&services, side).await,
            Deed::Refuse => {
                self.network.cut(&services, side);
                self.for_a_while().await;
            }
            _ => self.for_a_while().await,
        }
        self.network.set(&services, side, Way::default());
        let counts = services.iter().any(|nth| COUNTING.contains(nth));
        if counts && matches!(side, Side::Postgres | Side::Both) {
            self.counted_alone(began);
        }
    }

    async fn cut_answers(&mut self, services: &[usize], side: Side) {
        for _ in 0..=self.dice.below(CUTS) {
            self.network.cut(services, side);
            tokio::time::sleep(self.dice.millis(20..400)).await;
        }
    }

    /// Mostly shorter than any timeout, sometimes longer than leases live.
    pub(super) async fn for_a_while(&mut self) {
        let span = if self.dice.chance(70) {
            200..2_500
        } else {
            2_500..12_000
        };
        tokio::time::sleep(self.dice.millis(span)).await;
    }

    pub(super) fn some_services(&mut self) -> Vec<usize> {
        if self.dice.chance(40) {
            return (0..SERVICES).collect();
        }
        vec![self.dice.below(SERVICES)]
    }

    fn side(&mut self) -> Side {
        let servers = self.servers.nats.len();
        match self.dice.below(10) {
            0..=1 => Side::Both,
            2..=4 => Side::Postgres,
            5..=7 if servers > 1 => Side::OneOfNats(self.dice.below(servers)),
            _ => Side::Nats,
        }
    }

    fn whom(&mut self, services: &[usize], side: Side) -> String {
        let services = match services {
            [nth] => self.system.programs()[*nth].name().to_owned(),
            _ => "all services".to_owned(),
        };
        match side {
            Side::OneOfNats(nth) => format!("{services} and {}", self.servers.name(nth)),
            Side::Nats => format!("{services} and NATS"),
            Side::Postgres => format!("{services} and Postgres"),
            Side::Both => format!("{services} and NATS and Postgres"),
        }
    }
}

/// The state of a path under a deed that leaves no choice.
fn way_of(deed: Deed) -> Way {
    let mut way = Way::default();
    if matches!(deed, Deed::Partition | Deed::HoldRequests) {
        way.there = Passage::Held;
    }
    if matches!(deed, Deed::Partition | Deed::HoldAnswers) {
        way.back = Passage::Held;
    }
    way.refuses = deed == Deed::Refuse;
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_holds_both_directions_and_others_one_or_none() {
        let held = |deed| {
            let way = way_of(deed);
            let [there, back] = [way.there, way.back].map(|passage| passage == Passage::Held);
            (there, back, way.refuses)
        };
        assert_eq!(held(Deed::Partition), (true, true, false));
        assert_eq!(held(Deed::HoldRequests), (true, false, false));
        assert_eq!(held(Deed::HoldAnswers), (false, true, false));
        assert_eq!(held(Deed::Refuse), (false, false, true));
        assert_eq!(held(Deed::CutAnswers), (false, false, false));
    }
}
