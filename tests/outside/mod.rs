//! The tests, a module per capability.
