//! The foundation of tests from outside: a running system, organizations of their own in it, and
//! clients that know only HTTP.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up has failed"
)]

mod client;
mod operator;
mod organization;
mod owner;
mod person;
mod processes;
mod proxy;
mod reaper;
mod receiver;
mod shape;
mod slow;
mod socket;
mod system;
mod wait;

pub use client::{Answer, Client, next_page};
pub use operator::heal;
pub use organization::Organization;
pub use owner::{Owner, sign_in};
pub use person::{PASSWORD, Person};
pub use processes::{Program, programs};
pub use reaper::Group;
pub use receiver::{Received, Receiver};
pub use shape::Shape;
pub use slow::SlowReader;
pub use socket::Socket;
pub use system::System;
pub use wait::{eventually, eventually_within};
