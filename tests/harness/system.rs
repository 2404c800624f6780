//! A running Waypost.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use local_servers::{LocalNats, LocalPostgres, NatsOptions, PostgresOptions, TemporaryHome, Urls};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::OnceCell;

use crate::reaper::Reaper;
use crate::shape::{self, Place};
use crate::{Client, Organization, Program, Shape, eventually_within, programs};

/// A running system with its own data.
pub struct System {
    shape: Shape,
    addr: SocketAddr,
    programs: Vec<Program>,
    environment: Vec<(String, String)>,
    reaper: Reaper,
    /// Its own NATS, if the test may disturb it.
    pub nats: Option<LocalNats>,
    /// Its own Postgres, if the test may disturb it.
    pub postgres: Option<LocalPostgres>,
    home: TemporaryHome,
}

/// Durations too long for tests by default, and generous timeouts for a machine that builds and
/// tests at once. Tests of outages reset the latter.
const SETTINGS: &[(&str, &str)] = &[
    ("WAYPOST_ALLOW_PRIVATE_TARGETS", "1"),
    ("WAYPOST_WEBHOOK_RETRY_SECONDS", "0.1,0.2,0.4"),
    ("WAYPOST_WEBHOOK_TIMEOUT_SECONDS", "2"),
    ("WAYPOST_WS_AUTH_SECONDS", "1"),
    ("WAYPOST_LOG_TIMEOUT_MS", "10000"),
    ("WAYPOST_FOLD_EVENTS", "20"),
    ("WAYPOST_LIMIT_PATIENCE_SECONDS", "5"),
    ("WAYPOST_DATABASE_ACQUIRE_SECONDS", "15"),
    ("WAYPOST_POSITION_WAIT_SECONDS", "20"),
    ("WAYPOST_DEMO", "false"),
    ("WAYPOST_LOG", "info"),
];

const START_LIMIT: Duration = Duration::from_mins(1);

static SHARED: OnceCell<System> = OnceCell::const_new();

impl System {
    /// The system that most tests of a binary share, each in organizations of its own.
    pub async fn shared(shape: Shape) -> &'static Self {
        SHARED.get_or_init(|| Self::start(shape, &[])).await
    }

    /// Starts a system with its own settings on the servers that all tests share.
    pub async fn start(shape: Shape, settings: &[(&str, &str)]) -> Self {
        let home = TemporaryHome::new().expect("a folder");
        let environment = Self::environment_of_its_own().await;
        Self::run(shape, home, environment, settings, (None, None)).await
    }

    /// Restores a system of the same shape from a backup of this one with its secrets; also returns
    /// the restore's output.
    pub async fn restored(&self, backup: &Path) -> (Self, Value) {
        let home = TemporaryHome::new().expect("a folder");
        let secrets = home.path().join("secrets");
        std::fs::create_dir(&secrets).expect("a folder");
        for key in ["master.key", "token.key"] {
            let from = self.home().join("secrets").join(key);
            std::fs::copy(from, secrets.join(key)).expect("a key");
        }
        let mut environment = Self::environment_of_its_own().await;
        environment.push(("WAYPOST_HOME".to_owned(), home.path().display().to_string()));
        let arguments = ["restore", backup.to_str().expect("UTF-8")];
        let told = printed(
            &arguments,
            &run_waypost(&environment, &arguments, b"").await,
        );
        let system = Self::run(self.shape, home, environment, &[], (None, None)).await;
        (system, told)
    }

    /// Creates its own database and prefix on the servers that all tests share.
    async fn environment_of_its_own() -> Vec<(String, String)> {
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
        environment
    }

    /// Starts a system on its own servers, for tests that disturb them or inspect their data.
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
        let servers = (Some(nats), Some(postgres));
        Self::run(shape, home, environment, settings, servers).await
    }

    /// Starts a system on servers that the caller started and disturbs.
    pub async fn start_on(
        shape: Shape,
        home: TemporaryHome,
        servers: &Urls,
        settings: &[(&str, &str)],
    ) -> Self {
        let named = [
            ("NATS_URL", &servers.nats),
            ("DATABASE_URL", &servers.database),
            ("WAYPOST_READ_DATABASE_URL", &servers.reader),
        ];
        let environment = named
            .into_iter()
            .filter_map(|(name, url)| Some((name.to_owned(), url.clone()?)));
        let environment = environment.collect();
        Self::run(shape, home, environment, settings, (None, None)).await
    }

    async fn run(
        shape: Shape,
        home: TemporaryHome,
        mut environment: Vec<(String, String)>,
        settings: &[(&str, &str)],
        (nats, postgres): (Option<LocalNats>, Option<LocalPostgres>),
    ) -> Self {
        environment.push(("WAYPOST_HOME".to_owned(), home.path().display().to_string()));
        let all = SETTINGS.iter().chain(settings);
        environment.extend(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let reaper = Reaper::start(home.path());
        let (addr, programs) = shape.start(Place {
            environment: &environment,
            home: home.path(),
            group: reaper.group(),
        });
        let system = Self {
            shape,
            addr,
            programs,
            environment,
            reaper,
            nats,
            postgres,
            home,
        };
        system.until_ready().await;
        system
    }

    /// The shape it runs in.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its folder.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The messages sent to a phone number, oldest first.
    pub fn outbox(&self, phone: &str) -> Vec<Value> {
        let path = self.home().join("outbox/sms.ndjson");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let sent = lines.map(|line| line.expect("JSON"));
        sent.filter(|sent| sent["phone"] == phone).collect()
    }

    /// Its processes, to be killed, paused and restarted.
    pub fn programs(&mut self) -> &mut [Program] {
        &mut self.programs
    }

    /// The output of all its processes.
    pub fn said(&self) -> String {
        self.programs.iter().map(Program::said).collect()
    }

    /// A client without a key.
    pub fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.addr))
    }

    /// A client of each process' own address, by the program's name.
    pub fn clients(&self) -> Vec<(&str, Client)> {
        let clients = self.programs.iter().map(|program| {
            let addr = program.setting("WAYPOST_ADDR").expect("an address");
            (program.name(), Client::new(&format!("http://{addr}")))
        });
        clients.collect()
    }

    /// Creates an organization for one test.
    pub async fn organization(&self) -> Organization<'_> {
        Organization::create(self).await
    }

    /// Starts another instance of a service, and returns it with a client of its own address.
    pub async fn another(&self, service: &str) -> (Client, Program) {
        let log = format!("{service}-{}", uuid::Uuid::new_v4().simple());
        let place = Place {
            environment: &self.environment,
            home: self.home.path(),
            group: self.reaper.group(),
        };
        let (addr, program) = shape::start(service, &log, &[], place);
        until_ready(&program).await;
        (Client::new(&format!("http://{addr}")), program)
    }

    /// A variable of its processes' environment.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let known = &mut self.environment.iter().rev();
        let found = known.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A connection to its database.
    pub async fn database(&self) -> PgConnection {
        let url = self.setting("DATABASE_URL").expect("DATABASE_URL");
        PgConnection::connect(url).await.expect("Postgres")
    }

    /// Runs the operator's command line and returns the JSON object it printed.
    pub async fn waypost(&self, arguments: &[&str]) -> Value {
        self.waypost_reading(arguments, b"").await
    }

    /// The same with input on stdin.
    pub async fn waypost_reading(&self, arguments: &[&str], stdin: &[u8]) -> Value {
        printed(arguments, &self.waypost_output(arguments, stdin).await)
    }

    /// Runs a command that prints something other than one object, and returns what it printed.
    pub async fn waypost_text(&self, arguments: &[&str]) -> String {
        let output = self.waypost_output(arguments, b"").await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "waypost {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs the operator's command line, successfully or not.
    pub async fn waypost_output(&self, arguments: &[&str], stdin: &[u8]) -> Output {
        run_waypost(&self.environment, arguments, stdin).await
    }

    /// Starts an operator's command, to be killed.
    pub fn begin_waypost(&self, arguments: &[&str]) -> tokio::process::Child {
        spawned(&self.environment, arguments)
    }

    /// Kills everything at once: all programs, and its own servers if it has any.
    pub fn crash(&mut self) {
        for program in &mut self.programs {
            program.kill();
        }
        if let Some(nats) = &mut self.nats {
            nats.kill();
        }
        if let Some(postgres) = &mut self.postgres {
            postgres.kill();
        }
    }

    /// Restarts what [`crash`](Self::crash) has killed.
    pub async fn revive(&mut self) {
        if let Some(nats) = &mut self.nats {
            nats.restart().await.expect("NATS again");
        }
        if let Some(postgres) = &mut self.postgres {
            postgres.restart().await.expect("Postgres again");
        }
        for program in &mut self.programs {
            program.restart();
        }
        self.until_ready().await;
    }

    /// Waits until every process reports that it is ready.
    pub async fn until_ready(&self) {
        for program in &self.programs {
            until_ready(program).await;
        }
    }
}

async fn run_waypost(environment: &[(String, String)], arguments: &[&str], stdin: &[u8]) -> Output {
    use tokio::io::AsyncWriteExt as _;
    let mut child = spawned(environment, arguments);
    let mut input = child.stdin.take().expect("a pipe");
    let stdin = stdin.to_vec();
    // A command that reads nothing closes the pipe; that is not an error.
    tokio::spawn(async move { input.write_all(&stdin).await.ok() });
    child.wait_with_output().await.expect("waypost ends")
}

fn spawned(environment: &[(String, String)], arguments: &[&str]) -> tokio::process::Child {
    tokio::process::Command::new(programs().join("waypost"))
        .args(arguments)
        // The addresses of the system that the developer runs are none of this one's.
        .env_remove("WAYPOST_ADDR")
        .env_remove("WAYPOST_PUBLIC_URL")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("waypost starts")
}

/// The JSON object that a command has printed.
fn printed(arguments: &[&str], output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The reason comes last, and a failure may be shown only from its beginning.
    let lines: Vec<_> = stderr.lines().rev().collect();
    let said = lines.join("\n");
    assert!(output.status.success(), "waypost {arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

async fn until_ready(program: &Program) {
    let addr = program.setting("WAYPOST_ADDR").expect("an address");
    let client = Client::new(&format!("http://{addr}"));
    let ready = eventually_within(START_LIMIT * 2, program.name(), async || {
        let request = client.request(reqwest::Method::GET, "/readyz");
        let answer = crate::Answer::or_error(request).await.ok()?;
        answer.status.is_success().then_some(())
    });
    let in_time = tokio::time::timeout(START_LIMIT, ready).await;
    assert!(in_time.is_ok(), "not ready: {}", program.said());
}
