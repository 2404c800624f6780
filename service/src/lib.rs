//! What all services share: settings, telemetry, the HTTP edge, health, database pools and
//! shutdown.
//!
//! A service builds its router, wraps it once in [`edge`], and hands it to [`serve`]. Handlers
//! answer with [`HttpError`], read bodies with [`body::read`] and get the request's context from
//! [`RequestContext`].

pub mod body;
mod client;
pub mod clock;
pub mod database;
mod edge;
mod elsewhere;
mod error;
mod files;
pub mod health;
mod memory;
pub mod outflow;
pub mod progress;
mod request_context;
mod serve;
pub mod settings;
mod shares;
mod start;
pub mod telemetry;

pub use client::{Client, Networks};
pub use clock::{Clock, SystemClock};
pub use edge::edge;
pub use elsewhere::answered_elsewhere;
pub use error::HttpError;
pub use memory::{Full, Held};
pub use request_context::RequestContext;
pub use serve::{ServeError, listen, serve, until_signalled};
pub use settings::Secret;
pub use shares::{Share, Shares};
pub use start::once_there;

/// Requests allocate much and free on other threads, which the system's allocator is slow at.
/// Applies to every program that links this crate.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
