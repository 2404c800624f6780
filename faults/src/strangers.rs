//! The crowd beside the load: strangers, and a hostile tenant.

use std::sync::Arc;

use harness::System;
use hostile::{Attack, Crowd, Ground, Neighbour, SECRET, Sink, Size, Tally};
use serde_json::json;

use crate::world::text;
use hostile::Dice;

/// Requests per window for the tenant's limited key.
const LIMIT: u64 = 5;

/// The crowd's resources, set up before there are faults.
pub(crate) struct Strangers {
    ground: Ground,
    /// Target of the tenant's webhooks and calls, which never answers.
    sink: Sink,
    /// The token of one of its persons, who is in nobody's circle.
    trespasser: String,
}

impl Strangers {
    /// Creates the tenant and what it needs.
    pub(crate) async fn settle(system: &System, dice: &Dice) -> Self {
        let sink = Sink::start().await.expect("a receiver");
        let made = system.organization().await;
        let terms = json!({"name": "limited", "scopes": ["workflows:trigger"],
            "rateLimit": LIMIT});
        let limited = made.admin.post("/api/v1/keys", &terms).await.ok(201);
        let set = ["secret", "set", "--org", &made.id, SECRET.name, "--hosts"];
        let set = [&set[..], &[SECRET.host]].concat();
        system.waypost_reading(&set, SECRET.value.as_bytes()).await;
        let trespasser = system.person("Trespasser").await.token;
        let neighbour = Neighbour {
            org: made.id.clone(),
            key: made.key.clone(),
            limited_key: text(&limited["key"]),
        };
        // The services' own addresses, since a proxy would absorb much of this.
        let door = |name: &str| {
            let mut clients = system.clients().into_iter();
            let client = clients.find(|(known, _)| *known == name);
            let base = client.map(|(_, client)| client.base().replace("http://", ""));
            base.and_then(|addr| addr.parse().ok()).expect("an address")
        };
        let ground = Ground {
            commands: door("command-api"),
            queries: door("query-api"),
            sockets: door("workflow-runner"),
            sink: sink.addr(),
            neighbours: vec![neighbour],
            size: Size::SMALL,
            seed: dice.of("strangers").throw(),
        };
        let refused = hostile::prepare(&ground).await;
        for refused in refused {
            println!("refused to the crowd: {refused}");
        }
        Self {
            ground,
            sink,
            trespasser,
        }
    }

    /// The token of the person among them.
    pub(crate) fn trespasser(&self) -> &str {
        &self.trespasser
    }

    pub(crate) fn neighbour(&self) -> &Neighbour {
        &self.ground.neighbours[0]
    }

    /// Whether one of the crowd's requests led to a trace.
    pub(crate) fn led_to(&self, trace: u128) -> bool {
        trace >> 64 == u128::from(self.ground.trace())
    }

    /// Starts the crowd.
    pub(crate) fn gather(&self) -> Crowd {
        Crowd::gather(self.ground.clone(), &Attack::ALL)
    }

    /// Stops the crowd and releases those waiting for the sink's answers.
    pub(crate) async fn leave(&mut self, crowd: Crowd) -> Arc<Tally> {
        let tally = crowd.leave().await;
        self.sink.close();
        tally
    }
}
