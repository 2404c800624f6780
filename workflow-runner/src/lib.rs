//! The workflow runner.

pub mod leases;
pub mod targets;
