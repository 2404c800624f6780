pub(crate) mod migrate;
pub(crate) mod run;
mod signals;
pub(crate) mod with;

use local_servers::{Error, Servers};

/// The variables with the addresses of the servers.
fn variables(servers: &Servers) -> Vec<(&'static str, &str)> {
    let mut variables = vec![
        ("NATS_URL", servers.nats_url()),
        ("DATABASE_URL", servers.database_url()),
    ];
    variables.extend(
        servers
            .reader_database_url()
            .map(|url| ("WAYPOST_READ_DATABASE_URL", url)),
    );
    variables
}

fn no_signals(source: std::io::Error) -> Error {
    Error::Spawn {
        program: "the signal handlers".to_owned(),
        source,
    }
}
