//! The `local-servers` program, run as a shell would.
#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use local_servers::TemporaryHome;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local-servers"));
    // The tests themselves may run with given servers.
    for name in ["NATS_URL", "DATABASE_URL", "WAYPOST_READ_DATABASE_URL"] {
        command.env_remove(name);
    }
    command
}

fn with(script: &str) -> Command {
    let mut command = program();
    command.args(["with", "--", "/bin/sh", "-c", script]);
    command
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

struct Running {
    child: Child,
    variables: Vec<(String, String)>,
}

impl Running {
    /// `local-servers run`, once it has printed the addresses of its servers.
    fn start(home: &Path) -> Self {
        let mut child = program()
            .args(["run", "--home"])
            .arg(home)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let variables = lines.take(3).map(|line| variable(&line.unwrap())).collect();
        Self { child, variables }
    }

    fn database_url(&self) -> &str {
        let found = self
            .variables
            .iter()
            .find(|(name, _)| name == "DATABASE_URL");
        &found.unwrap().1
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

fn variable(line: &str) -> (String, String) {
    let (name, value) = line
        .strip_prefix("export ")
        .unwrap()
        .split_once('=')
        .unwrap();
    (name.to_owned(), value.trim_matches('\'').to_owned())
}

#[test]
fn a_command_finds_its_servers_and_gives_its_status() {
    let output =
        with("echo $NATS_URL; echo $DATABASE_URL; echo $WAYPOST_READ_DATABASE_URL; exit 7")
            .output()
            .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let text = printed(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("nats://waypost:"), "{text}");
    assert!(lines[1].starts_with("postgres://waypost:"), "{text}");
    assert!(lines[2].starts_with("postgres://waypost_reader:"), "{text}");
}

#[test]
fn given_servers_are_used() {
    let output = with("echo $NATS_URL $DATABASE_URL")
        .env("NATS_URL", "nats://given")
        .env("DATABASE_URL", "postgres://given")
        .output()
        .unwrap();
    assert_eq!(printed(&output), "nats://given postgres://given\n");
}

#[test]
fn stragglers_of_the_command_are_ended() {
    // Its pipe would hold this test for an hour if the background process lived on.
    let output = with("sleep 3600 & echo started").output().unwrap();
    assert_eq!(printed(&output), "started\n");
    assert!(output.status.success());
}

#[test]
fn an_interrupt_reaches_the_command_and_its_exit_status_is_returned() {
    let mut child = with("trap 'exit 42' INT; echo ready; while :; do sleep 0.05; done")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(42));
}

#[test]
fn an_interrupt_during_the_start_leaves_nothing_behind() {
    let folder = TemporaryHome::new().unwrap();
    let mut child = with("true").env("TMPDIR", folder.path()).spawn().unwrap();
    while std::fs::read_dir(folder.path()).unwrap().next().is_none() {
        assert!(child.try_wait().unwrap().is_none());
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn servers_run_until_interrupted_and_keep_their_data() {
    let home = TemporaryHome::new().unwrap();
    let mut first = Running::start(home.path());
    create_table(first.database_url()).await;
    first.send(Signal::INT);
    assert!(first.child.wait().unwrap().success());
    assert!(PgConnection::connect(first.database_url()).await.is_err());

    let mut second = Running::start(home.path());
    assert_eq!(first.variables, second.variables);
    read_table(second.database_url()).await;
    second.send(Signal::TERM);
    assert!(second.child.wait().unwrap().success());
}

#[tokio::test]
async fn a_killed_run_hinders_no_later_one_and_loses_nothing() {
    let home = TemporaryHome::new().unwrap();
    let mut first = Running::start(home.path());
    create_table(first.database_url()).await;
    first.send(Signal::KILL);
    first.child.wait().unwrap();

    let mut second = Running::start(home.path());
    read_table(second.database_url()).await;
    second.send(Signal::INT);
    assert!(second.child.wait().unwrap().success());
}

#[tokio::test]
async fn servers_follow_a_killed_run() {
    let home = TemporaryHome::new().unwrap();
    let mut run = Running::start(home.path());
    run.send(Signal::KILL);
    run.child.wait().unwrap();
    while PgConnection::connect(run.database_url()).await.is_ok() {}
}

#[tokio::test]
async fn migrations_are_run_once() {
    let home = TemporaryHome::new().unwrap();
    let mut run = Running::start(home.path());
    let folder = TemporaryHome::new().unwrap();
    std::fs::write(
        folder.path().join("0001_facts.sql"),
        "CREATE TABLE facts (id int);",
    )
    .unwrap();
    for _ in 0..2 {
        let status = program()
            .args(["migrate", "--from"])
            .arg(folder.path())
            .env("DATABASE_URL", run.database_url())
            .status()
            .unwrap();
        assert!(status.success());
    }
    read_table(run.database_url()).await;
    run.send(Signal::INT);
    run.child.wait().unwrap();
}

#[tokio::test]
async fn new_databases_have_seen_the_migrations_of_the_template() {
    let folder = TemporaryHome::new().unwrap();
    let migration = folder.path().join("0001_facts.sql");
    std::fs::write(migration, "CREATE TABLE facts (id int);").unwrap();
    let mut child = program()
        .args(["with", "--template"])
        .arg(folder.path())
        .args(["--", "/bin/sh", "-c", "echo $DATABASE_URL; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut url)
        .unwrap();

    let mut connection = PgConnection::connect(url.trim()).await.unwrap();
    let create = sqlx::query("CREATE DATABASE another");
    create.execute(&mut connection).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    read_table(&format!("{server}/another")).await;
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

async fn create_table(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query("CREATE TABLE facts (id int)")
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn read_table(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query("SELECT * FROM facts")
        .execute(&mut connection)
        .await
        .unwrap();
}
