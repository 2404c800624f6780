//! What the nemesis does with a standby of Postgres.

use std::time::Instant;

use local_servers::TemporaryHome;

use super::{Nemesis, Target};
use crate::disk;

impl Nemesis {
    /// Kills Postgres and promotes a standby, which lacks what was not yet replicated to it. Later
    /// its data are moved back to Postgres' place, as after the repair of a machine.
    pub(super) async fn standby_promoted(&mut self) {
        let began = Instant::now();
        let home = TemporaryHome::new().expect("a folder");
        let standby = self.servers.postgres.standby(home.path()).await;
        let mut standby = standby.expect("a standby");
        self.for_a_while().await;
        self.kills(Target::Postgres);
        self.servers.postgres.kill();
        standby.promote().await.expect("a standby to write to");
        self.network.lead_to(&standby).expect("an address");
        self.for_a_while().await;
        standby.stop().await.expect("a standby that ends");
        disk::put_back(standby.data(), self.servers.postgres.data()).await;
        self.bring_back(Target::Postgres).await;
        let back = self.network.lead_to(&self.servers.postgres);
        back.expect("an address");
        self.counted_alone(began);
    }
}
