//! The measured servers and programs, as separate processes.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use event_log::{EventLog, Keyring, LogSettings};
use local_servers::{LocalNats, Servers, TemporaryHome, Urls};
use serde_json::Value;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::load::Connection;

/// Private servers, and Waypost's programs on them.
pub(crate) struct System {
    programs: Vec<Process>,
    /// Kept alive as long as they are used.
    nats: Vec<LocalNats>,
    pub(crate) servers: Servers,
    home: TemporaryHome,
}

/// A child process, killed when dropped.
pub(crate) struct Process {
    pub(crate) addr: SocketAddr,
    child: Child,
}

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl System {
    /// Starts servers and the named programs, the one that is measured first.
    pub(crate) async fn start(programs: &[&str]) -> Self {
        Self::start_on(1, programs).await
    }

    /// The same on one NATS server, or on three that keep three copies.
    pub(crate) async fn start_on(replicas: usize, programs: &[&str]) -> Self {
        let home = TemporaryHome::new().expect("a folder");
        let nats = LocalNats::start_several(home.path(), replicas).await;
        let nats = nats.expect("NATS");
        let given = Urls {
            nats: Some(LocalNats::urls(&nats)),
            ..Urls::default()
        };
        let servers = Servers::start(home.path(), given).await.expect("servers");
        let mut system = Self {
            programs: Vec::new(),
            nats,
            servers,
            home,
        };
        system.waypost(&["migrate"]).await;
        for program in programs {
            let arguments: &[&str] = if *program == "waypost" { &["up"] } else { &[] };
            let process = system.spawn(program, "WAYPOST_ADDR", arguments);
            until_ready(process.addr).await;
            system.programs.push(process);
        }
        system
    }

    /// Starts one more program.
    pub(crate) fn run(&self, program: &str) -> Process {
        self.spawn(program, "WAYPOST_ADDR", &[])
    }

    /// Keeps a program running as long as the system.
    pub(crate) fn keep(&mut self, process: Process) {
        self.programs.push(process);
    }

    /// The folder of keys and settings.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file for the operator's command line and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// The address of the measured program.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.programs[0].addr
    }

    /// Starts this bench again in another role.
    pub(crate) async fn spawn_self(&self, role: &[&str]) -> Process {
        let process = self.spawn("bench", crate::ROLE_ADDR, role);
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(process.addr).await.is_err() {
            assert!(Instant::now() < end, "{role:?} does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        process
    }

    fn spawn(&self, program: &str, addr_variable: &str, arguments: &[&str]) -> Process {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        drop(listener);
        let child = self
            .command(program)
            .args(arguments)
            .env(addr_variable, addr.to_string())
            .spawn();
        Process {
            addr,
            child: child.expect("a program"),
        }
    }

    /// The NATS server, to be killed and restarted.
    pub(crate) fn nats(&mut self) -> &mut LocalNats {
        self.nats.first_mut().expect("a NATS server")
    }

    /// Number of copies of each event.
    pub(crate) fn replicas(&self) -> usize {
        self.nats.len()
    }

    /// The log, opened as a program of ours does.
    pub(crate) async fn log(&self) -> EventLog {
        let settings = LogSettings {
            log_replicas: self.replicas(),
            ..LogSettings::at(self.servers.nats_url())
        };
        let keyring = Keyring::load(self.home()).expect("keys");
        let log = EventLog::connect(&settings, keyring).await;
        log.expect("the log")
    }

    /// The command for a program of ours on these servers, not started yet.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(folder().join(program));
        command
            .env("WAYPOST_HOME", self.home.path())
            .env("NATS_URL", self.servers.nats_url())
            .env("WAYPOST_LOG_REPLICAS", self.replicas().to_string())
            .env("DATABASE_URL", self.servers.database_url())
            .env("WAYPOST_ALLOW_PRIVATE_TARGETS", "1")
            .env("WAYPOST_DEMO", "0")
            .env("WAYPOST_LIMIT_MINUTE_REQUESTS", "1000000000")
            .env("WAYPOST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Runs the operator's command line.
    pub(crate) async fn waypost(&self, arguments: &[&str]) -> Value {
        self.waypost_reading(arguments, "").await
    }

    /// The same with the given standard input.
    pub(crate) async fn waypost_reading(&self, arguments: &[&str], input: &str) -> Value {
        let mut command = self.command("waypost");
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let mut child = command.spawn().expect("waypost");
        let mut pipe = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have closed it.
        let _ = pipe.write_all(input.as_bytes()).await;
        drop(pipe);
        let output = child.wait_with_output().await.expect("waypost");
        assert!(output.status.success(), "waypost {arguments:?} failed");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Makes Postgres do now what it would do on its own, on both processors, in the minutes after
    /// many rows were written, while something is measured.
    pub(crate) async fn tidy_database(&self) {
        let mut database = PgConnection::connect(self.servers.database_url())
            .await
            .expect("Postgres");
        for sql in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
            database.execute(sql).await.expect("done");
        }
    }

    /// Creates an organization and a key of it with all rights.
    pub(crate) async fn organization(&self) -> (String, String) {
        let org = self.waypost(&["org", "create", "--name", "Bench"]).await;
        let org = org["orgId"].as_str().expect("orgId").to_owned();
        let create = [
            "key", "create", "--org", &org, "--name", "bench", "--scope", "admin",
        ];
        let key = self
            .waypost(&[&create[..], &["--rate-limit", "1000000000"]].concat())
            .await;
        (org, key["key"].as_str().expect("key").to_owned())
    }
}

fn folder() -> PathBuf {
    let this = std::env::current_exe().expect("this program's path");
    this.parent().expect("a folder").to_owned()
}

/// Waits until a program reports that it is ready.
pub(crate) async fn until_ready(addr: SocketAddr) {
    ready_within(addr, Duration::from_secs(30)).await;
}

/// The same with the given timeout.
pub(crate) async fn ready_within(addr: SocketAddr, timeout: Duration) {
    let request = b"GET /readyz HTTP/1.1\r\nhost: bench\r\n\r\n";
    let end = Instant::now() + timeout;
    loop {
        assert!(Instant::now() < end, "{addr} does not become ready");
        if TcpStream::connect(addr).await.is_ok() {
            let head = Connection::open(addr).await.send(request).await;
            if head.starts_with("200") {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
