//! Strangers and bad neighbours.
//!
//! A [`Crowd`] does to a Waypost what somebody on the open internet, with or without a key, could
//! do to take, stop or slow what belongs to others: every way that has ever worked, at once,
//! bounded in number, over loopback alone. `bench` measures what an ordinary tenant feels of it,
//! `faults` checks what is left beside it. What the crowd gets for it is counted by [`Tally`].

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

/// An organization whose people mean harm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its id.
    pub org: String,
    /// A key of it that may do everything, as often as it likes.
    pub key: String,
    /// A key of it whose limit is soon reached.
    pub limited_key: String,
}

/// How many of each there are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Connections that send a body and never its end, some of them with a neighbour's key.
    pub bodies: usize,
    /// What such a body with a key announces.
    pub body_bytes: usize,
    /// Connections whose heads never end.
    pub heads: usize,
    /// Connections that are silent.
    pub idle: usize,
    /// Strangers who sign in, register and want codes.
    pub strangers: usize,
    /// Readers of feeds who read nothing.
    pub readers: usize,
    /// Sockets that read nothing.
    pub sockets: usize,
    /// Of each neighbour: slow readers of exports.
    pub exports: usize,
    /// Of each neighbour: runs that wait for an answer that never comes.
    pub calls: usize,
    /// Of each neighbour: webhooks that never answer.
    pub hooks: usize,
    /// Of each neighbour: uploads that never end.
    pub uploads: usize,
    /// Of each neighbour: senders that do not heed 429.
    pub hammers: usize,
    /// Numbers in the list that templates work through.
    pub numbers: usize,
    /// Times that a neighbour sets its fan off, which is a message three times over for itself, and
    /// its loop, which is a run that sets the next one off over the API.
    pub sparks: usize,
    /// Milliseconds between two acts of one of them.
    pub pause: u64,
    /// Lines of one upload in a second.
    pub lines: u32,
    /// How long a call may take, in seconds.
    pub call_seconds: u32,
}

impl Size {
    /// As many as one machine sends without being what is slow.
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

/// What a crowd goes for, and with what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ground {
    /// Where Waypost takes commands.
    pub commands: SocketAddr,
    /// Where it answers queries.
    pub queries: SocketAddr,
    /// Where it keeps sockets.
    pub sockets: SocketAddr,
    /// What takes calls and never answers; see [`Sink`].
    pub sink: SocketAddr,
    /// Those who have keys.
    pub neighbours: Vec<Neighbour>,
    /// How many of each there are.
    pub size: Size,
    /// What chance follows from.
    pub seed: u64,
}

impl Ground {
    /// The first half of every trace that the crowd's requests bear.
    pub fn trace(&self) -> u64 {
        Dice::new(self.seed).of("traces").throw() | 1
    }
}

/// All who are at it; dropped, they leave.
#[derive(Debug)]
pub struct Crowd {
    tally: Arc<Tally>,
    tasks: JoinSet<()>,
}

/// What each of the crowd knows.
#[derive(Clone, Debug)]
struct Here {
    ground: Arc<Ground>,
    tally: Arc<Tally>,
    attack: Attack,
    /// Which of those who do the same.
    nth: usize,
    chance: Dice,
}

impl Crowd {
    /// Lets everybody begin who takes part in these attacks.
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

    /// What they have got so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Lets everybody go, with their connections.
    pub async fn leave(mut self) -> Arc<Tally> {
        self.tasks.shutdown().await;
        self.tally
    }
}

impl Here {
    /// The neighbour that this one belongs to.
    fn neighbour(&self) -> &Neighbour {
        &self.ground.neighbours[self.nth % self.ground.neighbours.len()]
    }

    /// Sends a request with the neighbour's key; gives what came of it in a word, and the JSON of the
    /// answer.
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

    /// Between two acts.
    fn pause(&self) -> Duration {
        Duration::from_millis(self.ground.size.pause)
    }

    /// Until somebody who was cut off comes back.
    fn rest(&self) -> Duration {
        self.pause() * 8
    }

    fn got(&self, what: impl Into<String>) {
        self.tally.add(self.attack, what);
    }
}
