//! Stops what a test process leaves behind, however it exits.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The process group of a system's programs.
#[derive(Clone, Copy, Debug)]
pub struct Group(pub(crate) i32);

/// A shell that leads the programs' group and waits for the end of its input, which comes when this
/// process exits: the system that tests share is never dropped.
#[derive(Debug)]
pub(crate) struct Reaper(Child);

impl Reaper {
    pub(crate) fn start(home: &Path) -> Self {
        let child = Command::new("sh")
            .args(["-c", "cat; rm -rf \"$0\"; kill -KILL 0"])
            .arg(home)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("a shell"))
    }

    pub(crate) fn group(&self) -> Group {
        Group(self.0.id().try_into().expect("a process id"))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // Dropping a system stops its programs and removes its folder anyway.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
