//! NATS JetStream as an event store.
//!
//! [`EventLog`] appends ([`EventLog::commit`]), reads aggregates ([`EventLog::load`],
//! [`EventLog::last`]) and follows the log ([`EventLog::follow`]). An acknowledged append is on
//! disk if the server runs with `sync_interval: always`; [`Durability`] says whether it does.
//!
//! Every append names the last sequence it expects of the aggregate's own stream. Of two deciders
//! that saw the same past only one succeeds, and an append that is retried after a lost
//! acknowledgement is recognised by its event id.

mod about;
mod answer_times;
mod append;
pub mod backup;
mod batch;
mod beginning;
mod bucket;
mod cause;
pub mod checkpoint;
mod connection;
mod deleted;
mod durability;
mod envelope;
mod erase;
mod error;
mod follower;
mod keyring;
mod load;
mod log;
mod mark;
mod page;
mod party;
mod position;
mod pull;
mod read;
mod reveal;
mod settings;
mod shared;
mod streams;
mod subject;
mod tail;
mod throttle;
mod vault;
mod way;

pub use about::{note_of_run, noted_run};
pub use append::{AppendError, Commit, Expected, Write};
pub use batch::{Batch, Item};
pub use bucket::Bucket;
pub use cause::CAUSE_HEADER;
pub use checkpoint::{CheckpointBucket, Fold, FoldCheckpoint};
pub use durability::Durability;
pub use error::{Error, ReadError, TailError, is_away};
pub use follower::Follower;
pub use keyring::{Keyring, KeyringError, MasterKeyFiles};
pub use load::Size;
pub use log::EventLog;
pub use mark::{Instead, Mark, MarkError, NoMark, WentBack};
pub use page::{CatchUp, Page};
pub use position::{Position, PositionError};
pub use settings::LogSettings;
pub use tail::Tail;
pub use vault::{Binding, Owner, Rotation, RotationError, Stage, TellWraps, Vault, VaultError};
pub use way::Whose;
