mod account;
mod buffers;
mod data;
mod place;
mod programs;
mod setup;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

pub(crate) use place::remove_outside;

use self::account::Account;
use self::buffers::shared_buffers;
use self::programs::Programs;
use self::setup::Passwords;
use crate::home::{self, Lock};
use crate::server::Server;
use crate::{Error, ports, processes};

pub(crate) const OWNER: &str = "waypost";
pub(crate) const READER: &str = "waypost_reader";
const DATABASE: &str = "waypost";
const NAME: &str = "Postgres server";
const PORT: &str = "postgres";
const DATA: &str = "data";
/// Its "fast" shutdown: open connections are closed, all data is written out.
const QUIT: Signal = Signal::INT;
/// Recovery from a crash under load takes a while.
const START_LIMIT: Duration = Duration::from_mins(2);
const STOP_LIMIT: Duration = Duration::from_mins(1);
/// How long the workers of a killed server may linger and block the next one.
const LINGER_LIMIT: Duration = Duration::from_secs(30);
const PROBE_LIMIT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 5;

const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    // A service holds up to some forty under load, and tests run many services in parallel.
    ("max_connections", "800"),
    ("max_wal_size", "4GB"),
    ("jit", "off"),
    ("timezone", "UTC"),
    ("log_min_messages", "warning"),
    // Statements and the values they fail on may be personal data.
    ("log_min_error_statement", "panic"),
    ("log_error_verbosity", "terse"),
];

/// Options of the private Postgres that differ from its defaults.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    /// Further settings, as in `postgresql.conf`; they override ours.
    pub settings: Vec<(String, String)>,
}

/// A private Postgres, stopped at the latest when dropped.
#[derive(Debug)]
pub struct LocalPostgres {
    server: Server,
    programs: Programs,
    account: Account,
    home: PathBuf,
    data: PathBuf,
    options: PostgresOptions,
    passwords: Passwords,
    port: u16,
    _lock: Lock,
}

impl LocalPostgres {
    /// Starts the home's Postgres, creating its data the first time, and waits until it answers.
    pub async fn start(home: &Path, options: PostgresOptions) -> Result<Self, Error> {
        let home = home::open(home)?;
        let account = Account::find()?;
        let folder = place::folder(&home, &account).await?;
        let lock = Lock::take(NAME, &folder)?;
        let data = folder.join(DATA);
        data::end_leftovers(&data).await?;
        let programs = programs::find(&data).await?;
        let passwords = data::prepare(&home, &data, &programs, &account).await?;

        let mut postgres = Self {
            server: Server::new(NAME, QUIT, folder.join("postgres.log")),
            programs,
            account,
            home,
            data,
            options,
            passwords,
            port: 0,
            _lock: lock,
        };
        postgres.start_on_a_free_port().await?;
        Ok(postgres)
    }

    /// The address of the `waypost` database as the role that owns everything.
    pub fn url(&self) -> String {
        self.database_url(DATABASE)
    }

    /// The address of the `waypost` database as the role that can only read.
    pub fn reader_url(&self) -> String {
        self.reader_database_url(DATABASE)
    }

    /// The address of any database of this server as the role that owns everything.
    pub fn database_url(&self, database: &str) -> String {
        url(OWNER, &self.passwords.owner, self.port, database)
    }

    /// The address of any database of this server as the role that can only read.
    pub fn reader_database_url(&self, database: &str) -> String {
        url(READER, &self.passwords.reader, self.port, database)
    }

    /// Creates an empty database and returns its owner's address.
    pub async fn create_database(&self, name: &str) -> Result<String, Error> {
        let mut connection = self.login().connect().await?;
        let statement = format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""));
        // The name is quoted; a database's name cannot be a parameter.
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await?;
        connection.close().await?;
        Ok(self.database_url(name))
    }

    /// The folder of its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The main process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server
            .pid()
            .map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
    }

    /// Stops the server; it writes out its data. [`restart`](Self::restart) starts it again.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.resume();
        self.server.stop(STOP_LIMIT).await
    }

    /// Kills the server and its workers at once, as a crash would (SIGKILL).
    pub fn kill(&mut self) {
        let workers = self.workers();
        self.server.kill();
        for pid in workers {
            processes::signal(pid, Signal::KILL);
        }
    }

    /// Starts a standby below another home: a copy of this server, which follows it and can only
    /// be read until it is [`promote`](Self::promote)d.
    pub async fn standby(&self, home: &Path) -> Result<Self, Error> {
        let home = home::open(home)?;
        for (role, password) in [
            (OWNER, &self.passwords.owner),
            (READER, &self.passwords.reader),
        ] {
            home::share_secret(&home, &data::secret_name(role), password)?;
        }
        let data = place::folder(&home, &self.account).await?.join(DATA);
        let (programs, account) = (&self.programs, &self.account);
        setup::copy_to_follow(&data, programs, account, &self.passwords, self.port).await?;
        Self::start(&home, self.options.clone()).await
    }

    /// Makes a standby stop following: from now on it is written to as any other. It lacks what it
    /// had not received.
    pub async fn promote(&self) -> Result<(), Error> {
        let mut connection = self.login().connect().await?;
        sqlx::query("SELECT pg_promote()")
            .execute(&mut connection)
            .await?;
        Ok(connection.close().await?)
    }

    /// Starts the server again, on the same port and data; stops it first if it runs.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        self.run().await
    }

    /// Suspends the server and its workers (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) {
        self.server.pause();
        for pid in self.workers() {
            processes::pause(pid);
        }
    }

    /// Resumes a paused server (SIGCONT).
    pub fn resume(&self) {
        for pid in self.workers() {
            processes::signal(pid, Signal::CONT);
        }
        self.server.signal(Signal::CONT);
    }

    /// Waits until the server ends on its own, which it should not; then it can be
    /// [`restart`](Self::restart)ed. Safe to drop at any time.
    pub async fn exited(&mut self) -> ExitStatus {
        self.server.exited().await
    }

    fn workers(&self) -> Vec<Pid> {
        self.server
            .pid()
            .map(processes::children_of)
            .unwrap_or_default()
    }

    /// Another process may take the port between our check and the bind; then a new one is picked.
    async fn start_on_a_free_port(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            self.port = ports::claim(&self.home, PORT)?;
            match self.run().await {
                Err(Error::Exited { .. }) if attempt < ATTEMPTS && !ports::is_free(self.port) => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// A killed server's workers may briefly outlive it; the next one refuses to start beside them.
    async fn run(&mut self) -> Result<(), Error> {
        let start = std::time::Instant::now();
        loop {
            self.spawn()?;
            let login = self.login();
            let ready = self
                .server
                .until_ready(START_LIMIT, async || answers(&login).await);
            match ready.await {
                Err(Error::Exited { tail, .. })
                    if tail.contains("shared memory block") && start.elapsed() < LINGER_LIMIT =>
                {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                outcome => return outcome,
            }
        }
    }

    fn spawn(&mut self) -> Result<(), Error> {
        data::discard_foreign_pid(&self.data)?;
        let mut command = self.account.command(&self.programs.postgres);
        command
            .arg("-D")
            .arg(&self.data)
            .env_remove("PGDATA")
            .env("LC_ALL", "C.UTF-8");
        let ours = SETTINGS.iter().copied();
        let (buffers, port) = (shared_buffers(), self.port.to_string());
        let theirs = self
            .options
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let buffers = ("shared_buffers", buffers.as_str());
        let ours = ours.chain([buffers]);
        for (name, value) in ours.chain(theirs).chain([("port", port.as_str())]) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        self.server.spawn(command)
    }

    fn login(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(OWNER)
            .password(&self.passwords.owner)
            .database(DATABASE)
            .ssl_mode(PgSslMode::Disable)
    }
}

impl Drop for LocalPostgres {
    /// Its "immediate" shutdown, which unlike a kill releases the shared memory.
    fn drop(&mut self) {
        self.resume();
        self.server.end_soon(Signal::QUIT);
    }
}

async fn answers(login: &PgConnectOptions) -> bool {
    let attempt = async {
        let mut connection = login.connect().await?;
        sqlx::query("SELECT 1").execute(&mut connection).await?;
        connection.close().await
    };
    matches!(tokio::time::timeout(PROBE_LIMIT, attempt).await, Ok(Ok(())))
}

/// The address at the last start, if there was one.
pub(crate) fn remembered_url(home: &Path, role: &str) -> Option<String> {
    let password = home::known_secret(home, &data::secret_name(role)).ok()??;
    Some(url(
        role,
        &password,
        ports::remembered(home, PORT)?,
        DATABASE,
    ))
}

fn url(role: &str, password: &str, port: u16, database: &str) -> String {
    format!("postgres://{role}:{password}@127.0.0.1:{port}/{database}")
}
