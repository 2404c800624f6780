//! The decisions of Waypost as pure functions: a command and past events in, new events or a
//! refusal out.
//!
//! One module per aggregate. Nothing here waits, reads a clock or draws random bytes. Ids, times
//! and hashes are arguments, so that HTTP, the workflow runner and the operator's commands decide
//! alike and every decision can be tested by example.

mod field;
mod object;
mod precondition;
mod text;

pub mod account;
pub mod circles;
pub mod key;
pub mod location;
pub mod operation;
pub mod organization;
pub mod presence;
pub mod record;
pub mod run;
pub mod secret;
pub mod sos;
pub mod target;
pub mod template;
pub mod webhook;
pub mod workflow;

pub use field::{FieldError, Invalid};
pub use precondition::{Precondition, Revision, Unmet};
pub use text::shortened;
