//! An organization's named secrets, set by the operator.

mod set;

pub use set::set;
