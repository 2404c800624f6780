//! Organizations, founded by the operator.

mod create;

pub use create::{NewOrganization, create};
