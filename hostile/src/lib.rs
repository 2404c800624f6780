//! Strangers and bad neighbours.
//!
//! A [`Crowd`] does to a Waypost what somebody on the open internet, with or without a key, could
//! do to take, stop or slow what belongs to others: every way that has ever worked, at once,
//! bounded in number, over loopback only. `bench` measures its effect on an ordinary tenant,
//! `faults` checks the state left beside it. [`Tally`] counts the crowd's results.

mod attack;
mod dice;
mod leaks;
mod loops;
mod neighbours;
mod prepare;
mod repeats;
mod revocations;
mod sink;
mod sockets;
mod squatters;
mod strangers;
mod tally;
mod targets;
mod uploads;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

pub use attack::Attack;
pub use dice::Dice;
pub use leaks::{SECRET, Secret};
pub use prepare::prepare;
pub use sink::Sink;
pub use tally::Tally;

/// A hostile organization.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its id.
    pub org: String,
    /// A key with all rights and no effective limit.
    pub key: String,
    /// A key that soon reaches its limit.
    pub limited_key: String,
}

/// Number of participants of each attack, and their parameters.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Connections that send a body without its end, some of them with a neighbour's key.
    pub bodies: usize,
    /// The announced length of such a body with a key.
    pub body_bytes: usize,
    /// Connections with endless heads.
    pub heads: usize,
    /// Silent connections.
    pub idle: usize,
    /// Strangers who sign in, register and request codes.
    pub strangers: usize,
    /// Clients of feeds that read nothing.
    pub readers: usize,
    /// Sockets that read nothing.
    pub sockets: usize,
    /// Per neighbour: slow readers of exports.
    pub exports: usize,
    /// Per neighbour: runs that wait for a response that never arrives.
    pub calls: usize,
    /// Per neighbour: webhooks that never answer.
    pub hooks: usize,
    /// Per neighbour: uploads that never end.
    pub uploads: usize,
    /// Per neighbour: senders that ignore 429.
    pub hammers: usize,
    /// Numbers in the list that templates work through.
    pub numbers: usize,
    /// How often a neighbour triggers its fan, a message that triggers itself three times over, and
    /// its loop, a run that triggers the next one over the API.
    pub sparks: usize,
    /// Milliseconds between two actions of one participant.
    pub pause: u64,
    /// Lines per second of one upload.
    pub lines: u32,
    /// How long a call may take, in seconds.
    pub call_seconds: u32,
}

impl Size {
    /// As many as one machine can send without becoming the bottleneck.
    pub const LARGE: Self = Self {
        bodies: 400,
        body_bytes: 1_000_000,
        heads: 200,
        idle: 300,
        strangers: 32,
        readers: 150,
        sockets: 100,
        exports: 8,
        calls: 300,
        hooks: 16,
        uploads: 2,
        hammers: 4,
        numbers: 33_000,
        sparks: 3,
        pause: 250,
        lines: 50,
        call_seconds: 120,
    };

    /// Few enough that everything they leave behind can be checked event by event.
    pub const SMALL: Self = Self {
        bodies: 20,
        body_bytes: 200_000,
        heads: 10,
        idle: 20,
        strangers: 3,
        readers: 12,
        sockets: 10,
        exports: 3,
        calls: 20,
        hooks: 2,
        uploads: 1,
        hammers: 1,
        numbers: 5_000,
        sparks: 1,
        pause: 2_000,
        lines: 5,
        call_seconds: 5,
    };
}

/// The targets of a crowd, and its means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ground {
    /// Address for commands.
    pub commands: SocketAddr,
    /// Address for queries.
    pub queries: SocketAddr,
    /// Address for sockets.
    pub sockets: SocketAddr,
    /// Address of a receiver that never answers; see [`Sink`].
    pub sink: SocketAddr,
    /// The organizations with keys.
    pub neighbours: Vec<Neighbour>,
    /// Number of participants of each attack, and their parameters.
    pub size: Size,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Ground {
    /// The first half of the trace ids of all the crowd's requests.
    pub fn trace(&self) -> u64 {
        Dice::new(self.seed).of("traces").throw() | 1
    }
}

/// All participants; dropping it ends them.
#[derive(Debug)]
pub struct Crowd {
    tally: Arc<Tally>,
    tasks: JoinSet<()>,
}

/// State of one participant.
#[derive(Clone, Debug)]
struct Here {
    ground: Arc<Ground>,
    tally: Arc<Tally>,
    attack: Attack,
    /// Its index among those of the same attack.
    nth: usize,
    chance: Dice,
}

impl Crowd {
    /// Starts all participants of these attacks.
    pub fn gather(ground: Ground, attacks: &[Attack]) -> Self {
        let ground = Arc::new(ground);
        let tally = Arc::<Tally>::default();
        let mut tasks = JoinSet::new();
        for attack in attacks {
            for nth in 0..attack.people(&ground) {
                let here = Here {
                    chance: Dice::new(ground.seed).of(&format!("{} {nth}", attack.name())),
                    ground: ground.clone(),
                    tally: tally.clone(),
                    attack: *attack,
                    nth,
                };
                tasks.spawn(attack.begin(here));
            }
        }
        Self { tally, tasks }
    }

    /// The results so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Ends all participants, with their connections.
    pub async fn leave(mut self) -> Arc<Tally> {
        self.tasks.shutdown().await;
        self.tally
    }
}

impl Here {
    /// The neighbour that this participant belongs to.
    fn neighbour(&self) -> &Neighbour {
        &self.ground.neighbours[self.nth % self.ground.neighbours.len()]
    }

    /// Sends a request with the neighbour's key; returns its outcome in a word, and the JSON of the
    /// response.
    async fn send(&self, request: (&str, &str), body: &Value) -> (String, Value) {
        self.send_with(&self.neighbour().key, request, body).await
    }

    /// The same with another key. A GET has no body.
    async fn send_with(
        &self,
        key: &str,
        (method, path): (&str, &str),
        body: &Value,
    ) -> (String, Value) {
        let asked = if method == "GET" {
            self.ground.head(method, path, key, "")
        } else {
            self.ground.json(method, path, key, &body.to_string())
        };
        wire::learn(self.nth, &asked).await
    }

    /// The time between two actions.
    fn pause(&self) -> Duration {
        Duration::from_millis(self.ground.size.pause)
    }

    /// The time until a participant that was cut off reconnects.
    fn rest(&self) -> Duration {
        self.pause() * 8
    }

    fn got(&self, what: impl Into<String>) {
        self.tally.add(self.attack, what);
    }
}
