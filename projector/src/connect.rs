//! The projector's own connections: their sessions are set up for its work, and the server ends
//! them when the projector falls silent.

use std::time::Duration;

use schemas::Log;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection, PgPool};
use tokio::time::{sleep, timeout};

use crate::checkpoint::log_name;
use crate::error::has_code;

/// A server that is available accepts a connection in far less.
const CONNECT: Duration = Duration::from_secs(3);
/// For an operator, who would rather wait than have to try again.
const CONNECT_FOR_OPERATOR: Duration = Duration::from_secs(20);
/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(250);
/// The SQLSTATE of a server whose `max_connections` are all taken.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Settings of sessions that write rows.
const WRITING: [(&str, &str); 6] = [
    // Rows and position are lost together or not at all, and the log has everything: a crash of the
    // server costs a moment's replay, while a flush for each batch would cost time.
    ("synchronous_commit", "off"),
    ("lock_timeout", "5s"),
    // Every statement finds rows by their keys, thousands at a time. Planning again for each batch
    // costs more than it gains, and a table that has just grown from nothing must not be scanned
    // in full because its statistics are old.
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// Opens connections to the database that a pool belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    options: PgConnectOptions,
    /// How long a session may be silent.
    pub(crate) takeover: Duration,
}

impl Connector {
    pub(crate) fn new(pool: &PgPool, takeover: Duration) -> Self {
        Self {
            options: (*pool.connect_options()).clone(),
            takeover,
        }
    }

    /// The name under which the server lists the writers of a log.
    pub(crate) fn writer_name(log: Log) -> String {
        format!("waypost projector {} writer", log_name(log))
    }

    /// A session that writes rows.
    pub(crate) async fn writer(&self, log: Log) -> Result<PgConnection, sqlx::Error> {
        let options = self.options.clone().options(WRITING);
        let takeover = self.takeover.as_millis().to_string();
        let options = options.options([
            // A projector that stopped in a transaction must not keep its rows locked for another.
            ("idle_in_transaction_session_timeout", takeover.as_str()),
            ("statement_timeout", "60s"),
        ]);
        open(options.application_name(&Self::writer_name(log))).await
    }

    /// A session that holds the lock of the active projector. The server ends it, and so frees the
    /// lock, after silence for the takeover time: also that of a process that was stopped, whose
    /// connection stays open.
    pub(crate) async fn holder(&self, log: Log) -> Result<PgConnection, sqlx::Error> {
        let name = format!("waypost projector {}", log_name(log));
        self.talkative(&name).await
    }

    /// A session for performing what operators request, which the server ends likewise.
    pub(crate) async fn performer(&self) -> Result<PgConnection, sqlx::Error> {
        self.talkative("waypost projector operations").await
    }

    /// A session that the server ends after silence for the takeover time.
    async fn talkative(&self, name: &str) -> Result<PgConnection, sqlx::Error> {
        let takeover = self.takeover.as_millis().to_string();
        let options = self
            .options
            .clone()
            .options([("idle_session_timeout", takeover.as_str())]);
        open(options.application_name(name)).await
    }
}

/// A session that writes rows into a copy in `schema`, where tables are looked up before `serving`.
pub(crate) async fn copier(
    pool: &PgPool,
    schema: &str,
    serving: &str,
) -> Result<PgConnection, sqlx::Error> {
    let path = format!("{schema},{serving}");
    let options = (*pool.connect_options()).clone().options(WRITING).options([
        ("search_path", path.as_str()),
        // Indexes are built and tables compared in one statement each.
        ("statement_timeout", "0"),
        // If the client ends, the server ends its statement, and its locks with it.
        ("client_connection_check_interval", "1s"),
        ("maintenance_work_mem", "256MB"),
    ]);
    let options = options.application_name(&format!("waypost {schema}"));
    open_within(CONNECT_FOR_OPERATOR, options).await
}

/// A session in which an operator changes rows.
pub(crate) async fn repairer(pool: &PgPool) -> Result<PgConnection, sqlx::Error> {
    let options = (*pool.connect_options()).clone().options(WRITING);
    // A process that stopped in a transaction must not keep the active projector waiting. Each
    // event is read from the log within a transaction, which takes far less or fails.
    let options = options.options([("idle_in_transaction_session_timeout", "5s")]);
    open_within(
        CONNECT_FOR_OPERATOR,
        options.application_name("waypost repair"),
    )
    .await
}

async fn open(options: PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    open_within(CONNECT, options).await
}

/// If the server has no room for another session, one may end in time.
async fn open_within(
    max_wait: Duration,
    options: PgConnectOptions,
) -> Result<PgConnection, sqlx::Error> {
    let opening = async {
        loop {
            match options.connect().await {
                Err(error) if has_code(&error, &[TOO_MANY_CONNECTIONS]) => sleep(AGAIN).await,
                opened => return opened,
            }
        }
    };
    timeout(max_wait, opening)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgSslMode;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The message of a server that refuses a session.
    fn refusal(code: &str) -> Vec<u8> {
        let fields = format!("SFATAL\0VFATAL\0C{code}\0Mno\0\0");
        let length = u32::try_from(fields.len() + 4).unwrap();
        [b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat()
    }

    #[tokio::test]
    async fn a_server_without_a_place_is_asked_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let wrong_password = "28P01";
        let server = tokio::spawn(async move {
            for code in [TOO_MANY_CONNECTIONS, TOO_MANY_CONNECTIONS, wrong_password] {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut startup = [0; 8];
                connection.read_exact(&mut startup).await.unwrap();
                connection.write_all(&refusal(code)).await.unwrap();
                // Waits until the other side has read it.
                connection.read_to_end(&mut Vec::new()).await.ok();
            }
        });
        let options = PgConnectOptions::new().host("127.0.0.1").port(port);
        let options = options.username("waypost").ssl_mode(PgSslMode::Disable);
        let opened = open_within(CONNECT_FOR_OPERATOR, options).await;
        let error = opened.unwrap_err();
        assert!(has_code(&error, &[wrong_password]), "{error:?}");
        server.await.unwrap();
    }
}
