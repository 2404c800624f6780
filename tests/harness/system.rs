//! A running Waypost.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use local_servers::{LocalNats, LocalPostgres, NatsOptions, PostgresOptions, TemporaryHome, Urls};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::OnceCell;

use crate::{Client, Organization, Program, eventually_within, programs, proxy};

/// How a system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All services in one process.
    One,
    /// Four processes behind a proxy.
    Four,
}

/// A running system with data of its own.
pub struct System {
    shape: Shape,
    addr: SocketAddr,
    programs: Vec<Program>,
    environment: Vec<(String, String)>,
    /// Its own NATS, where the test may hurt it.
    pub nats: Option<LocalNats>,
    /// Its own Postgres, where the test may hurt it.
    pub postgres: Option<LocalPostgres>,
    home: TemporaryHome,
}

/// Durations that tests do not want to wait for.
const SHORTENED: &[(&str, &str)] = &[
    ("WAYPOST_ALLOW_PRIVATE_TARGETS", "1"),
    ("WAYPOST_WEBHOOK_RETRY_SECONDS", "0.1,0.2,0.4"),
    ("WAYPOST_LOG", "info"),
];

static SHARED: OnceCell<System> = OnceCell::const_new();

impl System {
    /// The system that most tests of a binary share, each in organizations of its own.
    pub async fn shared(shape: Shape) -> &'static Self {
        SHARED.get_or_init(|| Self::start(shape, &[])).await
    }

    /// A system with settings of its own on the servers that all tests share.
    pub async fn start(shape: Shape, settings: &[(&str, &str)]) -> Self {
        let urls = Urls::from_environment();
        let nats = urls.nats.expect("NATS_URL: run tests by `make test`");
        let database = urls
            .database
            .expect("DATABASE_URL: run tests by `make test`");
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&database).await.expect("Postgres");
        let create = format!("CREATE DATABASE {name}");
        connection
            .execute(AssertSqlSafe(create))
            .await
            .expect("a database");
        let in_it = |url: &str| match url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{name}"),
            None => url.to_owned(),
        };
        let mut environment = vec![
            ("NATS_URL".to_owned(), nats),
            ("DATABASE_URL".to_owned(), in_it(&database)),
            ("WAYPOST_LOG_PREFIX".to_owned(), format!("{name}-")),
        ];
        if let Some(reader) = urls.reader {
            environment.push(("WAYPOST_READ_DATABASE_URL".to_owned(), in_it(&reader)));
        }
        let home = TemporaryHome::new().expect("a folder");
        Self::run(shape, home, environment, settings, (None, None)).await
    }

    /// A system on servers of its own, for tests that kill them.
    pub async fn start_alone(shape: Shape, settings: &[(&str, &str)]) -> Self {
        let home = TemporaryHome::new().expect("a folder");
        let nats = LocalNats::start(home.path(), NatsOptions::default())
            .await
            .expect("NATS");
        let postgres = LocalPostgres::start(home.path(), PostgresOptions::default()).await;
        let postgres = postgres.expect("Postgres");
        let environment = vec![
            ("NATS_URL".to_owned(), nats.url()),
            ("DATABASE_URL".to_owned(), postgres.url()),
            (
                "WAYPOST_READ_DATABASE_URL".to_owned(),
                postgres.reader_url(),
            ),
        ];
        Self::run(
            shape,
            home,
            environment,
            settings,
            (Some(nats), Some(postgres)),
        )
        .await
    }

    async fn run(
        shape: Shape,
        home: TemporaryHome,
        mut environment: Vec<(String, String)>,
        settings: &[(&str, &str)],
        (nats, postgres): (Option<LocalNats>, Option<LocalPostgres>),
    ) -> Self {
        environment.push(("WAYPOST_HOME".to_owned(), home.path().display().to_string()));
        let all = SHORTENED.iter().chain(settings);
        environment.extend(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let (addr, programs) = match shape {
            Shape::One => one_process(&environment, home.path()),
            Shape::Four => four_processes(&environment, home.path()),
        };
        let system = Self {
            shape,
            addr,
            programs,
            environment,
            nats,
            postgres,
            home,
        };
        system.until_ready().await;
        system
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its folder.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its processes, to be killed, paused and restarted.
    pub fn programs(&mut self) -> &mut [Program] {
        &mut self.programs
    }

    /// A client without a key.
    pub fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.addr))
    }

    /// An organization for one test.
    pub async fn organization(&self) -> Organization<'_> {
        Organization::create(self).await
    }

    /// A variable of its processes' environment.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self
            .environment
            .iter()
            .rev()
            .find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Runs the operator's command line and gives the JSON object it printed.
    pub async fn waypost(&self, arguments: &[&str]) -> Value {
        let output = self.waypost_output(arguments, b"").await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "waypost {arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Runs the operator's command line with something on its stdin.
    pub async fn waypost_output(&self, arguments: &[&str], stdin: &[u8]) -> std::process::Output {
        use tokio::io::AsyncWriteExt as _;
        let mut child = tokio::process::Command::new(programs().join("waypost"))
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("waypost starts");
        let mut input = child.stdin.take().expect("a pipe");
        let stdin = stdin.to_vec();
        // A command that reads nothing closes the pipe; that is no fault of the test.
        tokio::spawn(async move { input.write_all(&stdin).await.ok() });
        child.wait_with_output().await.expect("waypost ends")
    }

    /// Waits until every process says that it is ready.
    pub async fn until_ready(&self) {
        for program in &self.programs {
            let addr = addr_of(program);
            let client = Client::new(&format!("http://{addr}"));
            let what = format!("{} to be ready", program.name());
            eventually_within(Duration::from_mins(1), &what, async || {
                let request = client.request(reqwest::Method::GET, "/readyz");
                let answer = crate::Answer::or_error(request).await.ok()?;
                answer.status.is_success().then_some(())
            })
            .await;
        }
    }
}

fn addr_of(program: &Program) -> SocketAddr {
    let addr = program.setting("WAYPOST_ADDR");
    addr.and_then(|addr| addr.parse().ok()).expect("an address")
}

fn free_addr() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

fn start(
    name: &str,
    arguments: &[&str],
    common: &[(String, String)],
    home: &Path,
) -> (SocketAddr, Program) {
    let addr = free_addr();
    let mut environment = common.to_vec();
    environment.push(("WAYPOST_ADDR".to_owned(), addr.to_string()));
    (addr, Program::start(name, arguments, &environment, home))
}

fn one_process(environment: &[(String, String)], home: &Path) -> (SocketAddr, Vec<Program>) {
    let (addr, program) = start("waypost", &["up"], environment, home);
    (addr, vec![program])
}

fn four_processes(environment: &[(String, String)], home: &Path) -> (SocketAddr, Vec<Program>) {
    let (_, projector) = start("projector", &[], environment, home);
    let (commands, command_api) = start("command-api", &[], environment, home);
    let (queries, query_api) = start("query-api", &[], environment, home);
    let (sockets, runner) = start("workflow-runner", &[], environment, home);
    let addr = proxy::start(proxy::Routes {
        commands,
        queries,
        sockets,
    });
    (addr, vec![projector, command_api, query_api, runner])
}
