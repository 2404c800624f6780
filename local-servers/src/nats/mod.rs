mod cluster;
mod config;
mod lagging;
mod probe;
mod program;
mod routes;
mod staging;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::Signal;

pub use config::{NatsOptions, SyncInterval};
pub use lagging::{Answers, LaggingCopy};
pub use routes::Routes;

use self::cluster::Member;
use self::staging::Staging;
use crate::home::{self, Lock};
use crate::server::Server;
use crate::{Error, ports, processes};

const NAME: &str = "NATS server";
const USER: &str = "waypost";
const SYSTEM_USER: &str = "system";
const PORT: &str = "nats";
const MONITOR_PORT: &str = "nats-monitor";
const PASSWORD: &str = "nats-password";
/// Recovering a log of many million events takes a while.
const START_LIMIT: Duration = Duration::from_mins(2);
const STOP_LIMIT: Duration = Duration::from_mins(1);
const ATTEMPTS: usize = 5;
/// How soon the loss of the folder for batches is noticed.
const STAGING_LOOK: Duration = Duration::from_secs(1);

/// A private NATS server with JetStream, stopped at the latest when dropped.
#[derive(Debug)]
pub struct LocalNats {
    server: Server,
    program: PathBuf,
    home: PathBuf,
    folder: PathBuf,
    options: NatsOptions,
    member: Option<Member>,
    staging: Staging,
    password: String,
    port: u16,
    monitor_port: Option<u16>,
    _lock: Lock,
}

impl LocalNats {
    /// Starts the home's NATS server and waits until it answers.
    pub async fn start(home: &Path, options: NatsOptions) -> Result<Self, Error> {
        Self::start_as(home, options, None).await
    }

    async fn start_as(
        home: &Path,
        options: NatsOptions,
        member: Option<Member>,
    ) -> Result<Self, Error> {
        let home = home::open(home)?;
        let folder = home.join("nats");
        std::fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
        let lock = Lock::take(NAME, &folder)?;
        let program = program::find(&home).await?;
        let config = folder.join(config::FILE);
        let leftovers = || processes::started_with("-c", &config);
        processes::end_leftovers(NAME, leftovers, Signal::TERM, STOP_LIMIT).await?;

        let mut nats = Self {
            server: Server::new(NAME, Signal::TERM, folder.join("nats.log")),
            program,
            password: home::secret(&home, PASSWORD)?.value,
            home,
            staging: Staging::of(&folder),
            folder,
            options,
            member,
            port: 0,
            monitor_port: None,
            _lock: lock,
        };
        nats.start_on_a_free_port().await?;
        Ok(nats)
    }

    /// The address to connect to, with user and password (which have to be passed to the client
    /// crate separately: it does not read them from an address).
    pub fn url(&self) -> String {
        url(USER, &self.password, self.port)
    }

    /// The same server's system account, which can query how it is set up and reaches no data.
    pub fn system_url(&self) -> String {
        url(SYSTEM_USER, &self.password, self.port)
    }

    /// Where the server reports its state over HTTP, if [`NatsOptions::monitor`] is set.
    pub fn monitor_url(&self) -> Option<String> {
        self.monitor_port
            .map(|port| format!("http://127.0.0.1:{port}"))
    }

    /// The folder of its data.
    pub fn data(&self) -> PathBuf {
        config::data(&self.folder)
    }

    /// The folder in it where each stream has its own folder.
    pub fn streams(&self) -> PathBuf {
        config::streams(&self.folder)
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server
            .pid()
            .map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
    }

    /// Stops the server; it writes out its data. [`restart`](Self::restart) starts it again.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.server.stop(STOP_LIMIT).await
    }

    /// Kills the server at once, as a crash would (SIGKILL).
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts the server again, on the same port and data; stops it first if it runs.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        self.run().await
    }

    /// Suspends the server (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Resumes a paused server (SIGCONT).
    pub fn resume(&self) {
        self.server.signal(Signal::CONT);
    }

    /// Waits until the server ends on its own, which it should not; then it can be
    /// [`restart`](Self::restart)ed. Safe to drop at any time.
    pub async fn exited(&mut self) -> ExitStatus {
        loop {
            tokio::select! {
                status = self.server.exited() => return status,
                () = tokio::time::sleep(STAGING_LOOK) => (),
            }
            self.stage_in_memory().await;
        }
    }

    /// Another process may take a port between our check and the bind; then a new one is picked.
    async fn start_on_a_free_port(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            self.port = ports::claim(&self.home, PORT)?;
            if self.options.monitor {
                self.monitor_port = Some(ports::claim(&self.home, MONITOR_PORT)?);
            }
            match self.run().await {
                Err(Error::Exited { .. }) if attempt < ATTEMPTS && self.lost_a_port() => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn lost_a_port(&self) -> bool {
        !ports::is_free(self.port) || self.monitor_port.is_some_and(|port| !ports::is_free(port))
    }

    async fn run(&mut self) -> Result<(), Error> {
        let path = config::write(
            &self.folder,
            &self.options,
            self.member.as_ref(),
            self.port,
            self.monitor_port,
            &self.password,
        )?;
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&path).current_dir(&self.folder);
        self.server.spawn(command)?;
        let (port, password) = (self.port, &self.password);
        self.server
            .until_ready(START_LIMIT, async || {
                probe::answers(port, USER, password).await
            })
            .await?;
        self.stage_in_memory().await;
        Ok(())
    }

    async fn stage_in_memory(&self) {
        if self.member.is_none() {
            let streams = config::streams(&self.folder);
            self.staging.move_to_memory(&streams).await;
        }
    }
}

/// The address at the last start, if there was one.
pub(crate) fn remembered_url(home: &Path) -> Option<String> {
    let password = home::known_secret(home, PASSWORD).ok()??;
    Some(url(USER, &password, ports::remembered(home, PORT)?))
}

fn url(user: &str, password: &str, port: u16) -> String {
    format!("nats://{user}:{password}@127.0.0.1:{port}")
}
