//! Our programs as child processes.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use crate::reaper::Group;

/// The folder of the built programs: beside this one, or beside the folder of a test's own binary.
pub fn programs() -> PathBuf {
    let this = std::env::current_exe().expect("this program's path");
    let folder = this.parent().expect("a folder");
    if folder.ends_with("deps") {
        folder.parent().expect("the target folder").to_owned()
    } else {
        folder.to_owned()
    }
}

/// One of our programs that is running, killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    /// The folder it is in.
    folder: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    log: PathBuf,
    group: Group,
    child: Child,
}

impl Program {
    /// Starts a built program; its output goes to the file `log`.
    pub fn start(
        name: &str,
        arguments: &[&str],
        environment: &[(String, String)],
        log: &Path,
        group: Group,
    ) -> Self {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let folder = programs();
        let child = spawn(&folder.join(name), &arguments, environment, log, group);
        Self {
            name: name.to_owned(),
            folder,
            arguments,
            environment: environment.to_vec(),
            log: log.to_owned(),
            group,
            child,
        }
    }

    /// Kills it as a crash would (SIGKILL).
    pub fn kill(&mut self) {
        // It may have exited on its own, which makes no difference.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to exit (SIGTERM) and waits until it has.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().expect("an exit status")
    }

    /// Asks it to exit (SIGTERM) and does not wait.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Restarts it as it was first started.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(
            &self.folder.join(&self.name),
            &self.arguments,
            &self.environment,
            &self.log,
            self.group,
        );
    }

    /// Sets a variable of its environment from its next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Has it start from another folder from its next start on, or from where it was built.
    pub fn take_from(&mut self, folder: Option<PathBuf>) {
        self.folder = folder.unwrap_or_else(programs);
    }

    /// Whether it is started from a folder.
    pub fn is_from(&self, folder: &Path) -> bool {
        self.folder == folder
    }

    /// Whether it has exited, on its own or not.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Pauses it (SIGSTOP).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Lets it open at most `more` files and connections beyond the current ones, and returns its
    /// previous limit.
    pub fn limit_files_to_open(&self, more: usize) -> std::io::Result<Rlimit> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count();
        self.limit_files(Rlimit {
            current: u64::try_from(open + more).ok(),
            ..getrlimit(Resource::Nofile)
        })
    }

    /// Sets how many files and connections it may have open, and returns its previous limit.
    pub fn limit_files(&self, limit: Rlimit) -> std::io::Result<Rlimit> {
        Ok(prlimit(Some(self.pid()), Resource::Nofile, limit)?)
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A variable of its environment.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self
            .environment
            .iter()
            .rev()
            .find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a running program");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(
    program: &Path,
    arguments: &[String],
    environment: &[(String, String)],
    log: &Path,
    group: Group,
) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log file");
    Command::new(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .process_group(group.0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()))
}
