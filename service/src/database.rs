//! Connection pools for Postgres, and its migrations.

use std::str::FromStr;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgPool};

use crate::settings::{DatabaseSettings, MissingSetting, Secret};

/// A connection that was idle for longer is pinged before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// An error when creating a pool.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// No address was given.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// The address is not a Postgres address.
    #[error("{setting} is not a Postgres address: {source}")]
    Address {
        /// The variable that holds it.
        setting: &'static str,
        /// What is wrong with it.
        source: sqlx::Error,
    },
}

/// Creates a pool that may write. It connects when first used, so that a service starts without
/// Postgres.
pub fn connect(settings: &DatabaseSettings) -> Result<PgPool, DatabaseError> {
    let url = settings.required_url()?;
    let options = address("DATABASE_URL", url)?;
    Ok(pool(settings, settings.connections, options, &[]))
}

/// Creates a pool for the read-only role. If none is configured, the writing role is used, with
/// every transaction declared read-only.
pub fn connect_read_only(settings: &DatabaseSettings) -> Result<PgPool, DatabaseError> {
    let options = match settings.read_url() {
        Some(url) => address("WAYPOST_READ_DATABASE_URL", url)?,
        None => address("DATABASE_URL", settings.required_url()?)?,
    };
    let read_only = [("default_transaction_read_only", "on")];
    Ok(pool(
        settings,
        settings.read_connections,
        options,
        &read_only,
    ))
}

fn address(setting: &'static str, url: &Secret<String>) -> Result<PgConnectOptions, DatabaseError> {
    PgConnectOptions::from_str(url.expose())
        .map_err(|source| DatabaseError::Address { setting, source })
}

fn pool(
    settings: &DatabaseSettings,
    connections: u32,
    options: PgConnectOptions,
    more: &[(&str, &str)],
) -> PgPool {
    let statement_timeout = settings.statement_timeout.as_millis().to_string();
    let options = options
        .application_name("waypost")
        .options([("statement_timeout", statement_timeout.as_str())])
        .options(more.iter().copied());
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(settings.acquire_timeout)
        // A ping before every use would double the round trips of a busy pool.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > TRUSTED_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}

/// Migrates the database to the newest schema. Several processes may call this at once.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    sqlx::migrate!("../migrations").run(pool).await
}

/// Whether the database is unavailable or overloaded, so that a retry may help.
pub fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        // A server that dies in the middle of a message leaves half of it.
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| means_away(&code)),
        _ => false,
    }
}

/// Decides by the class of the SQLSTATE: connection failures, a transaction rolled back in favour
/// of others, no connection, memory or disk left, a server that is starting or stopping or a
/// statement that timed out, and system errors.
fn means_away(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "57" | "58")) || code == "55P03"
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The error from a server that sends this response and hangs up.
    async fn asked(answer: &'static [u8]) -> sqlx::Error {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = [0; 8];
                connection.read_exact(&mut request).await.unwrap();
                connection.write_all(answer).await.unwrap();
            }
        });
        let options = PgConnectOptions::new().host("127.0.0.1").port(port);
        let options = options.username("waypost").database("waypost");
        let error = sqlx::PgConnection::connect_with(&options).await;
        server.abort();
        error.unwrap_err()
    }

    #[tokio::test]
    async fn a_server_that_dies_in_the_middle_of_a_conversation_is_away() {
        let says_half = b"NR\0\0\0\x08\0\0";
        for answer in [&b""[..], b"N", b"H", says_half] {
            let error = asked(answer).await;
            assert!(is_unavailable(&error), "{answer:?}: {error:?}");
        }
    }

    #[test]
    fn errors_that_a_retry_may_help_with_are_distinguished_from_mistakes() {
        for away in [
            "08006", "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01",
            "57P02", "57P03", "57P05", "58030",
        ] {
            assert!(means_away(away), "{away}");
        }
        for mistake in ["23505", "42601", "22003", "XX000", ""] {
            assert!(!means_away(mistake), "{mistake}");
        }
    }
}
