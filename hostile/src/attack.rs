//! The attacks, by name.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{
    Ground, Here, leaks, loops, neighbours, repeats, revocations, sockets, squatters, strangers,
    targets, uploads,
};

/// For each neighbour, the number of callers that share the waiting calls.
pub(crate) const CALLERS: usize = 10;

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Attack {
    /// Sign-ins whose bodies lack their last bytes.
    Bodies,
    /// Requests with endless heads, a line a second.
    Heads,
    /// Connections that are kept unused.
    Idle,
    /// Commands without a key, whose bodies arrive after the refusal.
    Refusals,
    /// Sign-ins with guessed passwords, from many addresses.
    SignIns,
    /// Registrations from many addresses.
    Registrations,
    /// Codes for other people's numbers, requested and guessed.
    Codes,
    /// Clients of feeds that read nothing.
    Readers,
    /// Sockets that subscribe and read nothing.
    Sockets,
    /// Clients of exports that read a few bytes a second.
    Exports,
    /// Expressions whose cost depends on their arguments.
    Templates,
    /// A message that triggers itself three times over.
    Fans,
    /// Runs that wait for a response that never arrives.
    Calls,
    /// Events for webhooks that never answer.
    Hooks,
    /// Endless lines of records.
    Uploads,
    /// A key that ignores its limit.
    Hammers,
    /// Text that a database cannot store.
    Text,
    /// A key that is still used after its revocation: uploads, feeds and requests.
    Revocations,
    /// Responses with a token, requested again once the token has ended.
    Repeats,
    /// Addresses that operators would invite, and other people's numbers.
    Squatters,
    /// Calls and webhooks to metadata services, and to this machine.
    Targets,
    /// A run that triggers its own workflow over the API.
    Loops,
    /// A secret sent to where it may not go.
    Leaks,
}

type Doing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Attack {
    /// All attacks.
    pub const ALL: [Self; 23] = [
        Self::Bodies,
        Self::Heads,
        Self::Idle,
        Self::Refusals,
        Self::SignIns,
        Self::Registrations,
        Self::Codes,
        Self::Readers,
        Self::Sockets,
        Self::Exports,
        Self::Templates,
        Self::Fans,
        Self::Calls,
        Self::Hooks,
        Self::Uploads,
        Self::Hammers,
        Self::Text,
        Self::Revocations,
        Self::Repeats,
        Self::Squatters,
        Self::Targets,
        Self::Loops,
        Self::Leaks,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Heads => "heads",
            Self::Idle => "idle",
            Self::Refusals => "refusals",
            Self::SignIns => "sign-ins",
            Self::Registrations => "registrations",
            Self::Codes => "codes",
            Self::Readers => "readers",
            Self::Sockets => "sockets",
            Self::Exports => "exports",
            Self::Templates => "templates",
            Self::Fans => "fans",
            Self::Calls => "calls",
            Self::Hooks => "hooks",
            Self::Uploads => "uploads",
            Self::Hammers => "hammers",
            Self::Text => "text",
            Self::Revocations => "revocations",
            Self::Repeats => "repeats",
            Self::Squatters => "squatters",
            Self::Targets => "targets",
            Self::Loops => "loops",
            Self::Leaks => "leaks",
        }
    }

    /// Number of its participants.
    pub(crate) fn people(self, ground: &Ground) -> usize {
        let (size, neighbours) = (&ground.size, ground.neighbours.len());
        match self {
            Self::Bodies => size.bodies,
            Self::Heads => size.heads,
            Self::Idle => size.idle,
            Self::Refusals => size.strangers.div_ceil(4),
            Self::SignIns | Self::Registrations => size.strangers,
            Self::Codes | Self::Repeats | Self::Squatters => size.strangers.div_ceil(8),
            Self::Readers if neighbours > 0 => size.readers,
            Self::Sockets if neighbours > 0 => size.sockets,
            Self::Exports => size.exports * neighbours,
            Self::Calls => CALLERS * neighbours,
            Self::Uploads => size.uploads * neighbours,
            Self::Hammers => size.hammers * neighbours,
            Self::Readers
            | Self::Sockets
            | Self::Templates
            | Self::Fans
            | Self::Hooks
            | Self::Text
            | Self::Revocations
            | Self::Targets
            | Self::Loops
            | Self::Leaks => neighbours,
        }
    }

    pub(crate) fn begin(self, here: Here) -> Doing {
        match self {
            Self::Bodies => Box::pin(strangers::send_no_end(here)),
            Self::Heads => Box::pin(strangers::send_heads_for_ever(here)),
            Self::Idle => Box::pin(strangers::say_nothing(here)),
            Self::Refusals => Box::pin(strangers::send_bodies_late(here)),
            Self::SignIns => Box::pin(strangers::guess_passwords(here)),
            Self::Registrations => Box::pin(strangers::register(here)),
            Self::Codes => Box::pin(strangers::guess_codes(here)),
            Self::Readers => Box::pin(neighbours::read_nothing(here)),
            Self::Sockets => Box::pin(sockets::subscribe(here)),
            Self::Exports => Box::pin(neighbours::read_slowly(here)),
            Self::Templates => Box::pin(neighbours::compute(here)),
            Self::Fans => Box::pin(neighbours::fan(here)),
            Self::Calls => Box::pin(neighbours::call(here)),
            Self::Hooks => Box::pin(neighbours::tell(here)),
            Self::Uploads => Box::pin(uploads::upload(here)),
            Self::Hammers => Box::pin(neighbours::hammer(here)),
            Self::Text => Box::pin(neighbours::send_odd_text(here)),
            Self::Revocations => Box::pin(revocations::go_on(here)),
            Self::Repeats => Box::pin(repeats::repeat(here)),
            Self::Squatters => Box::pin(squatters::squat(here)),
            Self::Targets => Box::pin(targets::reach(here)),
            Self::Loops => Box::pin(loops::turn(here)),
            Self::Leaks => Box::pin(leaks::leak(here)),
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Attack {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|attack| attack.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|attack| attack.name()).collect();
            format!("is none of {}", names.join(", "))
        })
    }
}
