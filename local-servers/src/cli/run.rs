use std::path::Path;
use std::process::ExitCode;

use local_servers::{Error, Servers, Urls};

use super::signals::Signals;

/// Runs the servers of a home until a signal to stop.
pub(crate) async fn run(home: &Path) -> Result<ExitCode, Error> {
    let mut signals = Signals::listen().map_err(super::no_signals)?;
    let mut servers = tokio::select! {
        servers = Servers::start(home, Urls::default()) => servers?,
        _ = signals.next() => return Ok(ExitCode::FAILURE),
    };
    for (name, value) in super::variables(&servers) {
        println!("export {name}='{value}'");
    }
    let outcome = tokio::select! {
        error = servers.supervise() => Err(error),
        _ = signals.next() => Ok(ExitCode::SUCCESS),
    };
    servers.stop().await?;
    outcome
}
