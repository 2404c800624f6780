//! Processes as `/proc` lists them: how our servers are distinguished from others.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

const POLL: Duration = Duration::from_millis(20);
const PAUSE_POLL: Duration = Duration::from_millis(1);
const PAUSE_LIMIT: Duration = Duration::from_secs(2);

/// The processes that were started with `flag` directly followed by `path`, as our servers
/// are (`-c …/nats.conf`, `-D …/data`). A dead process that has not been reaped has no
/// command line and is not among them.
pub(crate) fn started_with(flag: &str, path: &Path) -> Vec<Pid> {
    all()
        .filter(|&pid| {
            let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else {
                return false;
            };
            let mut words = line.split(|&byte| byte == 0).skip(1);
            words.next() == Some(flag.as_bytes())
                && words.next() == Some(path.as_os_str().as_bytes())
        })
        .collect()
}

/// The processes whose parent is this one.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    all()
        .filter(|&pid| parent_of(pid) == Some(parent))
        .collect()
}

/// Sends a signal; a process that is already gone is no error.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(%pid, ?signal, %error, "A process could not be signalled.");
    }
}

/// Stops a process (SIGSTOP) and waits until it has stopped: one of its threads takes the signal,
/// and until that one gets a processor the others continue.
pub(crate) fn pause(pid: Pid) {
    signal(pid, Signal::STOP);
    let limit = Instant::now() + PAUSE_LIMIT;
    while !has_stopped(pid) && Instant::now() < limit {
        std::thread::sleep(PAUSE_POLL);
    }
}

/// Whether all of its threads are stopped, or none is left.
fn has_stopped(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    threads.flatten().all(|thread| {
        let state = fs::read_to_string(thread.path().join("stat"));
        // After the program's name, which is in brackets and may contain anything.
        state.is_ok_and(|state| {
            let state = state.rsplit_once(") ").map(|(_, rest)| rest);
            state.is_some_and(|state| state.starts_with(['T', 'Z', 'X']))
        })
    })
}

/// Ends what a killed run left behind: asks with `quit`, and kills after `limit`.
pub(crate) async fn end_leftovers(
    server: &'static str,
    find: impl Fn() -> Vec<Pid>,
    quit: Signal,
    limit: Duration,
) -> Result<(), Error> {
    let found = find();
    if found.is_empty() {
        return Ok(());
    }
    tracing::info!(server, pids = ?found, "Stopping what an earlier run left behind.");
    for &pid in &found {
        signal(pid, quit);
        // A paused process acts on no signal before it resumes.
        signal(pid, Signal::CONT);
    }
    if wait_until(limit, || find().is_empty()).await {
        return Ok(());
    }
    for pid in find() {
        signal(pid, Signal::KILL);
    }
    if wait_until(limit, || find().is_empty()).await {
        return Ok(());
    }
    Err(Error::Killed { server, limit })
}

/// Waits for a condition; returns false if it was not met in time.
pub(crate) async fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(POLL).await;
    }
    true
}

fn all() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; state and parent follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_by_its_parent_and_by_its_arguments() {
        let place = Path::new("/nowhere/in particular");
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read -r _"])
            .arg(place)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(children_of(rustix::process::getpid()).contains(&pid));
        assert!(started_with("-c", place).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_of(rustix::process::getpid()).contains(&pid));
    }
}
