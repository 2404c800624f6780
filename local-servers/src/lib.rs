//! A private NATS server and a private Postgres under a home folder.
//!
//! `waypost up`, the tests and the bench start their servers here. Both listen on 127.0.0.1 only,
//! on ports of their own that are stored in `ports.json`, with passwords that are stored in
//! `secrets/`. What a killed run left behind is recognised and stopped; a server that belongs to
//! anyone else is never touched.
//!
//! ```text
//! .waypost/
//!   ports.json       the ports that were picked at the first start
//!   secrets/         passwords, readable by the owner alone
//!   bin/nats-server  put there by scripts/prepare where the system has none that is new enough
//!   nats/            nats.conf, nats.log, lock, data/
//!   postgres/        postgres.log, lock, data/   (a link to /var/lib/waypost/… where root runs it
//!                    and the postgres account cannot enter the home)
//! ```
//!
//! For tests there are intermediaries in front of a server: a [`Proxy`] that delays, holds, cuts
//! and refuses, and a [`LaggingCopy`]; and between servers, [`Routes`].
//!
//! Processes are identified through `/proc`, so this works on Linux only.

mod error;
mod home;
mod nats;
mod ports;
mod postgres;
mod processes;
mod proxy;
mod server;
mod servers;

pub use error::Error;
pub use home::{TemporaryHome, Urls};
pub use nats::{Answers, LaggingCopy, LocalNats, NatsOptions, Routes, SyncInterval};
pub use postgres::{LocalPostgres, PostgresOptions};
pub use proxy::{Passage, Proxy, Way, far_away};
pub use servers::Servers;
