//! One server process of ours: started, watched, signalled, stopped.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::{Error, processes};

const POLL: Duration = Duration::from_millis(10);
const DROP_LIMIT: Duration = Duration::from_secs(6);
const TELL_EVERY: Duration = Duration::from_secs(5);
const TAIL_LINES: usize = 20;
const TAIL_BYTES: u64 = 16 * 1024;
const LARGE_LOG: u64 = 16 * 1024 * 1024;

/// A server program and, while it runs, its process.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    /// Asks the program to write out its data and exit.
    quit: Signal,
    log: PathBuf,
    log_start: u64,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    guard: Guard,
}

impl Server {
    pub(crate) fn new(name: &'static str, quit: Signal, log: PathBuf) -> Self {
        Self {
            name,
            quit,
            log,
            log_start: 0,
            running: None,
        }
    }

    /// Starts the program in a separate process group, so that Ctrl-C in a terminal reaches its
    /// parent only, which then stops its servers in order.
    pub(crate) fn spawn(&mut self, mut command: Command) -> Result<(), Error> {
        keep_log_small(&self.log);
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(Error::file("open", &self.log))?;
        self.log_start = log.metadata().map_or(0, |about| about.len());
        let errors = log.try_clone().map_err(Error::file("open", &self.log))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(Error::spawn(program))?;
        let guard = match Guard::over(Pid::from_child(&child), self.quit) {
            Ok(guard) => guard,
            Err(error) => {
                end_now(child);
                return Err(error);
            }
        };
        self.running = Some(Running { child, guard });
        Ok(())
    }

    /// Waits until `probe` reports that the server answers.
    pub(crate) async fn until_ready(
        &mut self,
        limit: Duration,
        probe: impl AsyncFn() -> bool,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let mut told = start;
        loop {
            if let Some(status) = self.ended() {
                return Err(Error::Exited {
                    server: self.name,
                    status,
                    log: self.log.clone(),
                    tail: self.tail(),
                });
            }
            if probe().await {
                return Ok(());
            }
            if start.elapsed() > limit {
                return Err(Error::NotReady {
                    server: self.name,
                    limit,
                    log: self.log.clone(),
                    tail: self.tail(),
                });
            }
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                tracing::info!(
                    server = self.name,
                    seconds = start.elapsed().as_secs(),
                    "Still starting."
                );
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.running
            .as_ref()
            .map(|running| Pid::from_child(&running.child))
    }

    /// Returns the status if the process has ended; it is then no longer ours.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let running = self.running.as_mut()?;
        let status = running.child.try_wait().ok().flatten()?;
        if let Some(running) = self.running.take() {
            running.guard.dismiss();
        }
        Some(status)
    }

    /// Waits for the process to end on its own; never returns if there is none.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(POLL * 10).await;
        }
    }

    /// Asks the server to end and waits for it; kills it after `limit`.
    pub(crate) async fn stop(&mut self, limit: Duration) -> Result<(), Error> {
        let Some(pid) = self.pid() else {
            return Ok(());
        };
        processes::signal(pid, self.quit);
        processes::signal(pid, Signal::CONT);
        if processes::wait_until(limit, || self.running.is_none() || self.ended().is_some()).await {
            return Ok(());
        }
        self.kill();
        Err(Error::Killed {
            server: self.name,
            limit,
        })
    }

    /// Ends the process at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(Running { child, guard }) = self.running.take() {
            end_now(child);
            guard.dismiss();
        }
    }

    /// Ends the process by a signal that it obeys within moments, or else at once. It blocks, as
    /// there is no `async` in a drop.
    pub(crate) fn end_soon(&mut self, signal: Signal) {
        self.signal(signal);
        let start = Instant::now();
        while self.running.is_some() && self.ended().is_none() && start.elapsed() < DROP_LIMIT {
            std::thread::sleep(POLL);
        }
        self.kill();
    }

    /// Suspends the server's own process; it is suspended when this returns.
    pub(crate) fn pause(&self) {
        if let Some(pid) = self.pid() {
            processes::pause(pid);
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            processes::signal(pid, signal);
        }
    }

    /// Returns what the server wrote since its start, at most the last lines.
    fn tail(&self) -> String {
        tail_of(&self.log, self.log_start).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell that outlives our own sudden death by a moment, to ask the server to end.
///
/// It waits on a pipe whose other end only we hold. The system's own means, a death
/// signal, would follow the starting thread instead of the process.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    const SCRIPT: &str = r#"read -r _ || { kill -s "$1" "$2"; kill -s CONT "$2"; }"#;

    fn over(pid: Pid, quit: Signal) -> Result<Self, Error> {
        let quit = if quit == Signal::INT { "INT" } else { "TERM" };
        Command::new("/bin/sh")
            .args(["-c", Self::SCRIPT, "waypost-guard", quit])
            .arg(pid.to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self)
            .map_err(Error::spawn("/bin/sh"))
    }

    /// The server has ended: nothing to guard, and its number may soon be another's.
    fn dismiss(self) {
        end_now(self.0);
    }
}

fn end_now(mut child: Child) {
    // Both fail only for a process that has ended and been collected, as is wanted.
    let _ = child.kill();
    let _ = child.wait();
}

/// Renames a large log before a start; the file that it replaces is older still.
fn keep_log_small(log: &Path) {
    if fs::metadata(log).is_ok_and(|about| about.len() > LARGE_LOG)
        && let Err(error) = fs::rename(log, log.with_extension("log.old"))
    {
        tracing::warn!(log = %log.display(), %error, "A large log could not be set aside.");
    }
}

fn tail_of(log: &Path, start: u64) -> std::io::Result<String> {
    let mut file = fs::File::open(log)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(start.max(end.saturating_sub(TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemporaryHome;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn a_server_that_ends_while_starting_shows_the_end_of_its_log() {
        let home = TemporaryHome::new().unwrap();
        let mut server = Server::new("test server", Signal::TERM, home.path().join("log"));
        server
            .spawn(shell("echo first; echo the reason; exit 3"))
            .unwrap();
        let error = server
            .until_ready(Duration::from_secs(20), async || false)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("first\nthe reason"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let home = TemporaryHome::new().unwrap();
        let mut server = Server::new("test server", Signal::TERM, home.path().join("log"));
        server.spawn(shell("read -r _ < /dev/zero")).unwrap();
        let outcome = server
            .until_ready(Duration::from_millis(50), async || false)
            .await;
        assert!(matches!(outcome, Err(Error::NotReady { .. })));
    }

    #[tokio::test]
    async fn a_server_that_ignores_the_request_to_stop_is_killed() {
        let home = TemporaryHome::new().unwrap();
        let ready = home.path().join("ready");
        let mut server = Server::new("test server", Signal::TERM, home.path().join("log"));
        let script = format!(
            "trap '' TERM; : > {}; while :; do sleep 0.05; done",
            ready.display()
        );
        server.spawn(shell(&script)).unwrap();
        server
            .until_ready(Duration::from_secs(20), async || ready.exists())
            .await
            .unwrap();
        let outcome = server.stop(Duration::from_millis(100)).await;
        assert!(matches!(outcome, Err(Error::Killed { .. })));
        assert!(server.pid().is_none());
    }
}
