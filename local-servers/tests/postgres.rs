//! The private Postgres, for real.
#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::net::TcpListener;
use std::path::Path;

use local_servers::{Error, LocalPostgres, PostgresOptions, TemporaryHome, Urls};
use sqlx::{Connection, PgConnection, Row};

async fn start(home: &Path) -> LocalPostgres {
    LocalPostgres::start(home, PostgresOptions::default())
        .await
        .unwrap()
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn write(postgres: &LocalPostgres) {
    let mut connection = connect(&postgres.url()).await;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS kept (id int); INSERT INTO kept VALUES (1)")
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn rows(url: &str) -> i64 {
    let mut connection = connect(url).await;
    let row = sqlx::query("SELECT count(*) FROM kept")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    row.get(0)
}

fn port(url: &str) -> u16 {
    let (address, _) = url.rsplit_once('/').unwrap();
    address.rsplit_once(':').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn data_outlives_a_stop() {
    let home = TemporaryHome::new().unwrap();
    let mut postgres = start(home.path()).await;
    let url = postgres.url();
    write(&postgres).await;
    postgres.stop().await.unwrap();
    assert_eq!(postgres.pid(), None);
    drop(postgres);

    let postgres = start(home.path()).await;
    assert_eq!(postgres.url(), url, "port and password are remembered");
    assert_eq!(rows(&url).await, 1);
}

#[tokio::test]
async fn what_was_committed_outlives_a_kill() {
    let home = TemporaryHome::new().unwrap();
    let mut postgres = start(home.path()).await;
    write(&postgres).await;
    // A worker that is busy when the server dies.
    let mut busy = connect(&postgres.url()).await;
    let query = tokio::spawn(async move {
        sqlx::query("SELECT pg_sleep(3600)")
            .execute(&mut busy)
            .await
    });
    until_asleep(&postgres.url()).await;
    postgres.kill();
    assert!(query.await.unwrap().is_err());
    postgres.restart().await.unwrap();
    assert_eq!(rows(&postgres.url()).await, 1);
}

#[tokio::test]
async fn a_standby_follows_until_it_is_promoted() {
    let (home, other) = (TemporaryHome::new().unwrap(), TemporaryHome::new().unwrap());
    let mut postgres = start(home.path()).await;
    write(&postgres).await;
    let standby = postgres.standby(other.path()).await.unwrap();
    assert_ne!(port(&standby.url()), port(&postgres.url()));
    write(&postgres).await;
    while rows(&standby.url()).await < 2 {}

    postgres.kill();
    standby.promote().await.unwrap();
    write(&standby).await;
    assert_eq!(rows(&standby.url()).await, 3);
}

async fn until_asleep(url: &str) {
    let mut connection = connect(url).await;
    loop {
        let row = sqlx::query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if row.get::<i64, _>(0) > 0 {
            return;
        }
    }
}

#[tokio::test]
async fn a_stale_pid_file_that_names_a_living_process_is_no_hindrance() {
    let home = TemporaryHome::new().unwrap();
    let mut postgres = start(home.path()).await;
    write(&postgres).await;
    postgres.kill();
    let pid_file = home
        .path()
        .canonicalize()
        .unwrap()
        .join("postgres/data/postmaster.pid");
    let text = std::fs::read_to_string(&pid_file).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    // Another process of the account that runs the server has got the pid since.
    let mut other = someone(&pid_file);
    std::fs::write(&pid_file, format!("{}\n{rest}", other.id())).unwrap();
    postgres.restart().await.unwrap();
    assert_eq!(rows(&postgres.url()).await, 1);
    assert!(
        other.try_wait().unwrap().is_none(),
        "the other process is let be"
    );
    other.kill().unwrap();
    other.wait().unwrap();
}

/// A process of the account that owns the file.
fn someone(file: &Path) -> std::process::Child {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("sleep");
    command.arg("3600");
    if rustix::process::geteuid().is_root() {
        let owner = std::fs::metadata(file).unwrap();
        command.uid(owner.uid()).gid(owner.gid());
    }
    command.spawn().unwrap()
}

#[tokio::test]
async fn two_homes_live_side_by_side_and_refuse_a_second_start() {
    let (one, other) = (TemporaryHome::new().unwrap(), TemporaryHome::new().unwrap());
    let (first, second) = tokio::join!(start(one.path()), start(other.path()));
    assert_ne!(first.url(), second.url());
    let third = LocalPostgres::start(one.path(), PostgresOptions::default()).await;
    assert!(matches!(third, Err(Error::InUse { .. })));
    write(&first).await;
    write(&second).await;
    assert_eq!(rows(&first.url()).await, 1);
}

#[tokio::test]
async fn a_port_that_someone_took_is_left_to_them() {
    let home = TemporaryHome::new().unwrap();
    let postgres = start(home.path()).await;
    let before = port(&postgres.url());
    write(&postgres).await;
    drop(postgres);

    let _someone = TcpListener::bind(("127.0.0.1", before)).unwrap();
    let postgres = start(home.path()).await;
    assert_ne!(port(&postgres.url()), before);
    let urls = Urls::of(home.path());
    assert_eq!(urls.database, Some(postgres.url()));
    assert_eq!(urls.reader, Some(postgres.reader_url()));
    assert_eq!(rows(&postgres.url()).await, 1);
}

#[tokio::test]
async fn the_reader_reads_every_table_and_writes_none() {
    let home = TemporaryHome::new().unwrap();
    let postgres = start(home.path()).await;
    let url = postgres.create_database("a \"b\"").await;
    assert!(url.is_ok());
    postgres.create_database("other").await.unwrap();
    let mut owner = connect(&postgres.database_url("other")).await;
    sqlx::raw_sql(
        "CREATE SCHEMA later; CREATE TABLE later.facts (id int); CREATE TABLE kept (id int)",
    )
    .execute(&mut owner)
    .await
    .unwrap();

    let reader_url = postgres.reader_database_url("other");
    assert_eq!(rows(&reader_url).await, 0);
    let mut reader = connect(&reader_url).await;
    sqlx::query("SELECT * FROM later.facts")
        .execute(&mut reader)
        .await
        .unwrap();
    for statement in [
        "INSERT INTO kept VALUES (1)",
        "SET default_transaction_read_only = off; INSERT INTO kept VALUES (1)",
        "SET default_transaction_read_only = off; CREATE TABLE mine (id int)",
        "SET default_transaction_read_only = off; DELETE FROM later.facts",
    ] {
        let outcome = sqlx::raw_sql(statement).execute(&mut reader).await;
        assert!(outcome.is_err(), "{statement}");
    }
}

#[tokio::test]
async fn nobody_gets_in_without_the_password() {
    let home = TemporaryHome::new().unwrap();
    let postgres = start(home.path()).await;
    let address = format!(
        "postgres://waypost:guess@127.0.0.1:{}/waypost",
        port(&postgres.url())
    );
    assert!(PgConnection::connect(&address).await.is_err());
}

#[tokio::test]
async fn lost_passwords_are_made_anew() {
    let home = TemporaryHome::new().unwrap();
    let mut postgres = start(home.path()).await;
    write(&postgres).await;
    let before = postgres.url();
    postgres.stop().await.unwrap();
    drop(postgres);
    std::fs::remove_dir_all(home.path().join("secrets")).unwrap();

    let postgres = start(home.path()).await;
    assert_ne!(postgres.url(), before);
    assert_eq!(rows(&postgres.url()).await, 1);
    assert_eq!(rows(&postgres.reader_url()).await, 1);
}

#[tokio::test]
async fn a_pause_holds_open_connections_too() {
    let home = TemporaryHome::new().unwrap();
    let postgres = start(home.path()).await;
    let mut open = connect(&postgres.url()).await;
    postgres.pause();
    let held =
        tokio::spawn(async move { sqlx::query("SELECT 1").execute(&mut open).await.map(|_| ()) });
    for _ in 0..50 {
        tokio::task::yield_now().await;
        assert!(!held.is_finished());
    }
    postgres.resume();
    held.await.unwrap().unwrap();
}

#[tokio::test]
async fn settings_of_the_caller_win() {
    let home = TemporaryHome::new().unwrap();
    let options = PostgresOptions {
        settings: vec![("max_connections".to_owned(), "17".to_owned())],
    };
    let postgres = LocalPostgres::start(home.path(), options).await.unwrap();
    let mut connection = connect(&postgres.url()).await;
    let row = sqlx::query("SHOW max_connections")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(row.get::<String, _>(0), "17");
}
