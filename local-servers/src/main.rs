//! The private servers from a shell: for `make test`, for developers, for `make sqlx`.

mod cli;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Starts a private NATS server and a private Postgres.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs a command with servers of its own and ends as it ends.
    ///
    /// It finds them in `NATS_URL`, `DATABASE_URL` and `WAYPOST_READ_DATABASE_URL`; servers
    /// that these name already are used instead.
    With {
        /// Folder of the data [default: a temporary folder].
        #[arg(long)]
        home: Option<PathBuf>,
        /// Folder of migrations that each new database of our own Postgres has seen already.
        #[arg(long)]
        template: Option<PathBuf>,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Runs the servers until Ctrl-C and prints their addresses for a shell.
    Run {
        /// Folder of the data.
        #[arg(long, env = "WAYPOST_HOME", default_value = ".waypost")]
        home: PathBuf,
    },
    /// Brings a database to the newest version.
    Migrate {
        /// The folder of the migrations.
        #[arg(long, default_value = "migrations")]
        from: PathBuf,
        /// Address of the database.
        #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
        database_url: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter("info,sqlx=warn")
        .init();
    let outcome = match Arguments::parse().command {
        Action::With {
            home,
            template,
            command,
        } => cli::with::with(home, template.as_deref(), command).await,
        Action::Run { home } => cli::run::run(&home).await,
        Action::Migrate { from, database_url } => cli::migrate::migrate(&from, &database_url).await,
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
