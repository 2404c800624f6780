//! Calls for help.

mod call;
mod decide;
#[cfg(test)]
mod tests;

pub use call::Request;
pub use decide::{By, Call, NotConcerned, Reply, answer, trigger};
