//! The client for addresses that users name: HTTP steps and webhooks.
//!
//! Nobody may use Waypost to reach into the operator's own network, except for the ranges that the
//! operator names. A name is judged by its addresses at the time it is dialled, within the client's
//! own resolver, so that the checked addresses are the ones dialled; addresses without a name are
//! judged before. Redirects are not followed and no proxy is used: either would be a way around.

mod names;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use clap::Args;
use domain::target::{self, Ranges};
use event_log::EventLog;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response};
use schemas::OrgId;
use url::Url;

use names::{CALLER, Lookups, Names, SystemNames};

/// The user agent of Waypost's calls.
pub const USER_AGENT: &str = concat!("Waypost/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than most servers' own, so that a kept connection is rarely one they just closed.
const IDLE: Duration = Duration::from_secs(30);
/// As many as the calls of one batch of runs: a connection costs both sides more than a call.
const IDLE_PER_HOST: usize = 512;

/// What may be called.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetSettings {
    /// Private address ranges that HTTP steps and webhooks may reach, comma-separated:
    /// `10.1.0.0/16,fd12:3456::/48`. `1` means this machine and the private ranges (`127/8`,
    /// `10/8`, `172.16/12`, `192.168/16`, `::1`, `fc00::/7`), `0` none. Link-local addresses, cloud
    /// metadata services and tunnels are always refused, and so are the ports of Waypost's own NATS
    /// and Postgres on private addresses.
    #[arg(
        long = "allow-private-targets",
        env = "WAYPOST_ALLOW_PRIVATE_TARGETS",
        default_value = "0",
        default_missing_value = "1",
        num_args = 0..=1
    )]
    pub open: Ranges,
}

/// The ports of Waypost's own servers: those of its log and its database.
pub fn own_ports(log: &EventLog, database: u16) -> Vec<u16> {
    let mut ports = log.server_ports();
    ports.push(database);
    ports
}

/// Why an address is not called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The address cannot be called.
    #[error("the address {0}")]
    Malformed(String),
    /// Calling the address is not allowed.
    #[error(transparent)]
    Refused(#[from] target::Refused),
}

/// Calls addresses that users name.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Reaches the public internet and what the operator opened.
    open: Guarded,
    /// Reaches the public internet only: for ports that Waypost's own servers have here.
    public: Guarded,
    own_ports: Arc<[u16]>,
}

#[derive(Clone, Debug)]
struct Guarded {
    client: Client,
    ranges: Ranges,
}

impl Targets {
    /// Creates the client. Whatever ranges are open, no private address is called at one of
    /// `own_ports`: the log and the database are for Waypost alone.
    pub fn new(settings: TargetSettings, own_ports: Vec<u16>) -> Result<Self, reqwest::Error> {
        Self::resolving(settings, own_ports, SystemNames)
    }

    fn resolving(
        settings: TargetSettings,
        own_ports: Vec<u16>,
        names: impl Names,
    ) -> Result<Self, reqwest::Error> {
        // Another part of the process may have installed the provider already: it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let lookups = Lookups::new(names);
        Ok(Self {
            open: Guarded::new(settings.open, lookups.clone())?,
            public: Guarded::new(Ranges::default(), lookups)?,
            own_ports: own_ports.into(),
        })
    }

    /// Starts an organization's request to an address, unless it must not be called.
    pub fn request(
        &self,
        org: &OrgId,
        method: Method,
        address: &str,
    ) -> Result<Request, TargetError> {
        let url = domain::webhook::check_url(address).map_err(TargetError::Malformed)?;
        let own = url.port_or_known_default();
        let own = own.is_some_and(|port| self.own_ports.contains(&port));
        let guarded = if own { &self.public } else { &self.open };
        guarded.check(&url)?;
        Ok(Request {
            org: org.clone(),
            builder: guarded.client.request(method, url),
        })
    }
}

/// A request on behalf of an organization.
#[must_use]
#[derive(Debug)]
pub struct Request {
    org: OrgId,
    builder: RequestBuilder,
}

impl Request {
    /// Continues to build the request.
    pub fn with(self, build: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        Self {
            builder: build(self.builder),
            ..self
        }
    }

    /// Sends the request. If its name has to be looked up, that counts as the organization's.
    pub async fn send(self) -> Result<Response, reqwest::Error> {
        CALLER.scope(self.org, self.builder.send()).await
    }
}

impl Guarded {
    fn new(ranges: Ranges, lookups: Lookups<impl Names>) -> Result<Self, reqwest::Error> {
        let resolver = Arc::new(Allowed {
            lookups,
            ranges: ranges.clone(),
        });
        let builder = || client(resolver.clone());
        let client = builder().build().or_else(|error| {
            tracing::warn!(%error, "No certificates to trust were found: HTTPS targets will fail");
            builder().tls_certs_only([]).build()
        })?;
        Ok(Self { client, ranges })
    }

    /// Judges an address as far as possible before it is dialled; addresses without a name do not
    /// go through the resolver.
    fn check(&self, url: &Url) -> Result<(), target::Refused> {
        url.host()
            .map_or(Ok(()), |host| target::check_host(&host, &self.ranges))
    }
}

fn client(resolver: Arc<impl Resolve + 'static>) -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .tcp_nodelay(true)
        .dns_resolver(resolver)
}

/// Resolves names to those of their addresses that may be called.
struct Allowed<N> {
    lookups: Lookups<N>,
    ranges: Ranges,
}

impl<N: Names> Resolve for Allowed<N> {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookups, ranges) = (self.lookups.clone(), self.ranges.clone());
        // Read here and not in the future: the client may finish connecting in a task of its own.
        let caller = CALLER.try_with(OrgId::clone).ok();
        Box::pin(async move {
            let found = lookups.find(caller, name.as_str().to_owned()).await?;
            let allowed = allowed(found, &ranges)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn allowed(
    mut found: Vec<SocketAddr>,
    ranges: &Ranges,
) -> Result<Vec<SocketAddr>, target::Refused> {
    let mut refused = None;
    found.retain(|address| {
        let judged = target::check_ip(address.ip(), ranges);
        judged.map_err(|reason| refused = Some(reason)).is_ok()
    });
    match refused {
        Some(reason) if found.is_empty() => Err(reason),
        _ => Ok(found),
    }
}

/// Describes what went wrong with a call, without the address or what was sent.
pub fn reason(error: &reqwest::Error) -> String {
    let innermost = innermost(error);
    if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_connect() || error.is_dns() {
        format!("cannot connect: {innermost}")
    } else if error.is_builder() {
        format!("the request could not be sent: {innermost}")
    } else if error.is_body() || error.is_decode() {
        format!("the response was cut off: {innermost}")
    } else {
        format!("the call failed: {innermost}")
    }
}

fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    // Only the outermost error would name the address.
    if innermost.is::<reqwest::Error>() {
        return "the connection broke".to_owned();
    }
    innermost.to_string()
}

/// The beginning of a response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// At most the requested number of bytes.
    pub bytes: Bytes,
    /// Whether there was more.
    pub truncated: bool,
}

/// Reads a body up to `max` bytes; the rest is left unread.
pub async fn read_body(mut response: Response, max: usize) -> Result<Body, reqwest::Error> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        let room = max - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(Body {
                bytes: bytes.freeze(),
                truncated: true,
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Body {
        bytes: bytes.freeze(),
        truncated: false,
    })
}

#[cfg(test)]
mod tests;
