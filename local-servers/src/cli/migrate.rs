use std::path::Path;
use std::process::ExitCode;

use local_servers::Error;
use sqlx::migrate::Migrator;
use sqlx::{Connection, PgConnection};

/// Runs the migrations of a folder that the database has not seen.
///
/// They are read at run time: crates that embed them need the migrated database to be compiled.
pub(crate) async fn migrate(from: &Path, database_url: &str) -> Result<ExitCode, Error> {
    let migrations = Migrator::new(from).await.map_err(sqlx::Error::from)?;
    let mut connection = PgConnection::connect(database_url).await?;
    migrations
        .run(&mut connection)
        .await
        .map_err(sqlx::Error::from)?;
    connection.close().await?;
    Ok(ExitCode::SUCCESS)
}
