//! What the nemesis does to the routes between NATS servers.

use local_servers::Passage;

use super::{Deed, Nemesis};

/// Number of times that one deed cuts connections.
const CUTS: usize = 8;

impl Nemesis {
    /// Disturbs the routes between servers for a while: between two of them, or between one and all
    /// others.
    pub(super) async fn hurt_routes(&mut self, deed: Deed) {
        let ways = self.some_routes();
        let delay = self.dice.millis(20..300);
        let (sent, received) = match deed {
            Deed::ServersParted => (Passage::Held, Passage::Held),
            Deed::ServersHalfParted => (Passage::Held, Passage::default()),
            Deed::ServersFar => {
                self.done.hurt(format!("{} ms", delay.as_millis()));
                (Passage::After(delay), Passage::After(delay))
            }
            _ => (Passage::default(), Passage::default()),
        };
        for way in &ways {
            self.servers.routes.set(*way, sent, received);
        }
        if deed == Deed::ServersCut {
            for _ in 0..=self.dice.below(CUTS) {
                for way in &ways {
                    self.servers.routes.cut(*way);
                }
                tokio::time::sleep(self.dice.millis(20..600)).await;
            }
        } else {
            self.for_a_while().await;
        }
        self.servers.routes.open();
    }

    fn some_routes(&mut self) -> Vec<(usize, usize)> {
        let count = self.servers.nats.len();
        let one = self.dice.below(count);
        let mut others: Vec<usize> = (0..count).filter(|nth| *nth != one).collect();
        if self.dice.chance(40) {
            let other = self.dice.below(others.len());
            others = vec![others[other]];
        }
        let names: Vec<_> = others.iter().map(|nth| self.servers.name(*nth)).collect();
        let one_is_called = self.servers.name(one);
        self.done
            .hurt(format!("{one_is_called} and {}", names.join(", ")));
        others.into_iter().map(|other| (one, other)).collect()
    }
}
