//! Limits while Postgres is unavailable, behind a proxy that can be cut or stopped.

use std::sync::Arc;
use std::time::Duration;

use access::LimitSettings;
use access::limit::Limiter;
use sqlx::postgres::PgPoolOptions;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Database, checks, hourly, server, until};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Carries everything.
    Open,
    /// Takes connections and carries nothing.
    Silent,
    /// Breaks every connection.
    Cut,
}

/// A way to the database that a test can block.
struct Proxy {
    port: u16,
    line: watch::Sender<Line>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, state) = watch::channel(Line::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, state.clone()));
            }
        });
        Self { port, line }
    }

    fn limiter(&self, database: &Database, settings: &LimitSettings) -> Limiter {
        let options = server()
            .host("127.0.0.1")
            .port(self.port)
            .database(&database.name);
        let pool = PgPoolOptions::new().connect_lazy_with(options);
        Limiter::start(&pool, settings, CancellationToken::new())
    }
}

async fn carry(mut client: TcpStream, mut line: watch::Receiver<Line>) {
    let target = (server().get_host().to_owned(), server().get_port());
    let mut server = TcpStream::connect(target).await.unwrap();
    loop {
        let now = *line.borrow_and_update();
        match now {
            Line::Cut => return,
            Line::Silent => line.changed().await.unwrap(),
            Line::Open => tokio::select! {
                _ = copy_bidirectional(&mut client, &mut server) => return,
                changed = line.changed() => changed.unwrap(),
            },
        }
    }
}

fn impatient() -> LimitSettings {
    LimitSettings {
        timeout: Duration::from_secs(2),
        retry: Duration::from_millis(20),
        ..LimitSettings::default()
    }
}

async fn total(database: &Database) -> i64 {
    sqlx::query_scalar("SELECT coalesce(sum(earlier + used), 0)::bigint FROM limit_windows")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn counts_go_on_from_the_last_seen_and_are_written_back() {
    let database = Database::create().await;
    let proxy = Proxy::start().await;
    let limiter = proxy.limiter(&database, &impatient());
    let counter = hourly(&limiter, "one");
    assert_eq!(checks(&limiter, &counter, 10, 4).await[3].remaining, 6);

    proxy.line.send(Line::Cut).unwrap();
    let alone = checks(&limiter, &counter, 10, 7).await;
    let remaining: Vec<u64> = alone.iter().map(|decision| decision.remaining).collect();
    assert_eq!(remaining, [5, 4, 3, 2, 1, 0, 0]);
    assert!(limiter.outage().is_some());
    assert!(
        matches!(alone[6].retry_after, Some(3_590..=3_601)),
        "{:?}",
        alone[6]
    );
    assert_eq!(total(&database).await, 4);

    proxy.line.send(Line::Open).unwrap();
    until("the outage over", async || limiter.outage().is_none()).await;
    until("all written back", async || total(&database).await == 10).await;
    let other = database.limiter(&impatient());
    assert!(!other.check(&hourly(&other, "one"), 10, 1).await.admitted());
    database.drop().await;
}

#[tokio::test]
async fn a_silent_database_holds_up_no_more_than_the_first_checks() {
    let database = Database::create().await;
    let proxy = Proxy::start().await;
    let settings = LimitSettings {
        timeout: Duration::from_millis(300),
        ..impatient()
    };
    let limiter = proxy.limiter(&database, &settings);
    let counter = hourly(&limiter, "one");
    checks(&limiter, &counter, 100, 1).await;

    proxy.line.send(Line::Silent).unwrap();
    let began = Instant::now();
    assert!(limiter.check(&counter, 100, 1).await.admitted());
    assert!(began.elapsed() < Duration::from_secs(2));
    let began = Instant::now();
    checks(&limiter, &counter, 100, 50).await;
    assert!(
        began.elapsed() < settings.timeout,
        "later checks do not wait"
    );

    proxy.line.send(Line::Open).unwrap();
    until("all written back", async || total(&database).await >= 52).await;
    database.drop().await;
}

#[tokio::test]
async fn a_limiter_starts_without_a_database() {
    let database = Database::create().await;
    let proxy = Proxy::start().await;
    proxy.line.send(Line::Cut).unwrap();
    let limiter = proxy.limiter(&database, &impatient());
    let counter = Arc::clone(&hourly(&limiter, "one"));
    let alone = checks(&limiter, &counter, 2, 3).await;
    assert!(alone[1].admitted() && !alone[2].admitted());
    proxy.line.send(Line::Open).unwrap();
    until("all written back", async || total(&database).await == 2).await;
    database.drop().await;
}
