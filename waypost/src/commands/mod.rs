//! The commands, one file each.

pub(crate) mod account;
pub(crate) mod backup;
pub(crate) mod demo;
pub(crate) mod events;
pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod listen;
pub(crate) mod master_key;
pub(crate) mod migrate;
pub(crate) mod org;
pub(crate) mod projection;
pub(crate) mod restore;
pub(crate) mod secret;
pub(crate) mod stats;
pub(crate) mod workflow;

use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use crate::Failure;

/// Prints a command's answer: one JSON object on stdout.
pub(crate) fn print(answer: &impl Serialize) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(answer)?);
    Ok(())
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
