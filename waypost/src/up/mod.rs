//! `waypost up`: everything in one process at one address.

mod demo;
mod services;

use std::time::Duration;

use access::Access;
use event_log::{EventLog, is_away};
use local_servers::{Servers, Urls};
use schemas::Log;
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings, Secret, TraceSettings};
use service::{database, health, once_there, telemetry};
use sqlx::PgPool;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::commands::demo::Demo;
use crate::{Failure, system};
use services::Services;

/// How often, and for how long, to check whether the demo can be used.
const LOOK: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Run everything in one process: private servers, all services, one address.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  waypost up\n  WAYPOST_ADDR=127.0.0.1:9090 WAYPOST_HOME=other waypost up"
)]
pub(crate) struct Up {
    #[command(flatten)]
    traces: TraceSettings,
    #[command(flatten)]
    http: HttpSettings,
    #[command(flatten)]
    services: services::Settings,
    #[command(flatten)]
    database: DatabaseSettings,
    /// Whether `waypost up` loads demo data at the first start.
    #[arg(long, env = "WAYPOST_DEMO", default_value_t = true, action = clap::ArgAction::Set,
          value_parser = clap::builder::BoolishValueParser::new())]
    demo: bool,
}

impl Up {
    pub(crate) async fn run(self, common: CommonSettings) -> Result<(), Failure> {
        let traces = telemetry::init_traced(&common, &self.traces, "waypost")?;
        let ended = Box::pin(self.start(common)).await;
        traces.finish().await;
        ended
    }

    async fn start(mut self, common: CommonSettings) -> Result<(), Failure> {
        let shutdown = service::until_signalled()?;
        // Taken first: with an address in use, nothing else should have been started.
        let listener = service::listen(self.http.addr).await?;
        eprintln!("Starting NATS and Postgres in {} …", common.home.display());
        let starting = Servers::start(
            &common.home,
            system::given(&self.services.log, &self.database),
        );
        let Some(servers) = shutdown.run_until_cancelled(starting).await else {
            return Ok(());
        };
        let mut servers = servers?;
        let urls = servers_urls(&servers);
        let system_url = servers.nats_system_url();
        self.services.log.nats_system_url = self.services.log.nats_system_url.or(system_url);
        let served = tokio::select! {
            served = self.serve(&common, listener, &urls, &shutdown) => served,
            lost = supervise(&mut servers, &shutdown) => Err(lost.into()),
        };
        shutdown.cancel();
        servers.stop().await?;
        served
    }

    async fn serve(
        mut self,
        common: &CommonSettings,
        listener: tokio::net::TcpListener,
        urls: &Urls,
        shutdown: &CancellationToken,
    ) -> Result<(), Failure> {
        self.database.url = urls.database.clone().map(Secret::new);
        self.database.read_url = urls.reader.clone().map(Secret::new);
        let pool = database::connect(&self.database)?;
        database::migrate(&pool).await?;
        self.services.log.nats_url = urls.nats.clone();
        let (settings, database) = (self.services, &self.database);
        let start = async |stop| {
            let starting = Services::start(settings.clone(), common, database, &stop);
            Box::pin(starting).await
        };
        let started = once_there(shutdown, |error: &Failure| is_away(&**error), start).await?;
        let Some(mut services) = started else {
            return Ok(());
        };
        let url = format!("http://{}", listener.local_addr()?);
        if let Err(error) = system::store_address(&common.home, &url) {
            tracing::warn!(%error, "Links that commands print will not begin with this address.");
        }
        let router = std::mem::take(&mut services.router);
        let router = router.merge(health::router(services.readiness.clone()));
        let serving = service::serve(
            listener,
            service::edge(router),
            shutdown.clone(),
            self.http.shutdown,
            self.http.edge,
        );
        let serving = tokio::spawn(serving);
        let greeting = async {
            if self.demo {
                match Box::pin(demo(common, &services, &pool, &url)).await {
                    Ok(Some(demo)) => {
                        tell_demo(&demo);
                        let shutdown = shutdown.clone();
                        tokio::spawn(async move { demo::live(&demo, shutdown).await });
                    }
                    Ok(None) => eprintln!("The log is not empty, so no demo data is created."),
                    Err(error) => eprintln!(
                        "The demo data could not be created whole: {error}. Waypost runs without \
                         it; another folder (WAYPOST_HOME) gets new demo data."
                    ),
                }
            }
            println!("Waypost is ready: {url}");
        };
        shutdown.run_until_cancelled(greeting).await;
        let ended = services.until_ended(shutdown).await;
        serving.await??;
        ended
    }
}

fn servers_urls(servers: &Servers) -> Urls {
    Urls {
        nats: Some(servers.nats_url().to_owned()),
        database: Some(servers.database_url().to_owned()),
        reader: servers.reader_database_url().map(str::to_owned),
    }
}

/// Ends only if a server of ours cannot be restarted.
async fn supervise(servers: &mut Servers, shutdown: &CancellationToken) -> local_servers::Error {
    match shutdown.run_until_cancelled(servers.supervise()).await {
        Some(lost) => lost,
        // The services end first; then the servers are stopped.
        None => std::future::pending().await,
    }
}

/// The demo of this home; created only in an empty log, so that a restored one stays as it was.
/// `None` if there is none and the log is not empty.
async fn demo(
    common: &CommonSettings,
    services: &Services,
    pool: &PgPool,
    url: &str,
) -> Result<Option<Demo>, Failure> {
    let log = services.commands.log();
    let mut demo = match Demo::load(&common.home)? {
        Some(demo) => demo,
        None if log.end(Log::Events).await?.sequence() > 0 => return Ok(None),
        None => {
            let demo = demo::load(&services.commands, url).await?;
            // If the log or Postgres hangs, both come a little later than they are printed.
            let _ = timeout(TIMEOUT, until_known(&services.access, &demo.api_key)).await;
            let _ = timeout(TIMEOUT, until_shown(log, pool)).await;
            demo
        }
    };
    // The address may differ from that of the last start.
    url.clone_into(&mut demo.url);
    demo.save(&common.home)?;
    Ok(Some(demo))
}

/// Waits until a key that was just created works: a user who reads it may use it at once.
async fn until_known(access: &Access, key: &str) {
    while access.identify(key).is_err() {
        sleep(LOOK).await;
    }
}

/// Waits until the read models hold what the log does: a user who looks at once sees all of it.
async fn until_shown(log: &EventLog, pool: &PgPool) {
    while projector::list(log, pool)
        .await
        .is_ok_and(|all| all.iter().any(|projection| projection.lag > 0))
    {
        sleep(LOOK).await;
    }
}

fn tell_demo(demo: &Demo) {
    println!("API          {}", demo.url);
    println!("API docs     {}/docs", demo.url);
    println!("Dashboard    {}/dashboard", demo.url);
    println!("WebSocket    {}/ws", demo.url.replacen("http", "ws", 1));
    println!("Metrics      {}/metrics", demo.url);
    println!("Demo key     {}", demo.api_key);
    println!("Demo sign-in {} {}", demo.owner.email, demo.owner.password);
    println!("Workflows    {}", demo.workflows.join(", "));
    println!(
        "Webhook      {} (run `waypost listen` to see it)",
        demo.webhook_url
    );
}
