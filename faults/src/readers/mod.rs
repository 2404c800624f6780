//! Long-lived readers: subscribers of sockets and a receiver of webhooks.

mod receiver;
mod socket;

pub(crate) use receiver::{Arrived, Receiver};
pub(crate) use socket::{Heard, Seen, listen};
