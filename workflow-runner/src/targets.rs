//! The client for addresses that users name: HTTP steps and webhooks.
//!
//! Nobody may use Waypost to reach into the operator's own network. A name is judged by the
//! addresses it has at the moment it is dialled, within the client's own resolver, so that what
//! was checked is what is dialled; addresses without a name are judged before. Redirects are not
//! followed and no proxy is used: either would be a way around.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use clap::Args;
use clap::builder::FalseyValueParser;
use domain::target;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response};
use url::Url;

/// How Waypost names itself to those it calls.
pub const USER_AGENT: &str = concat!("Waypost/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the usual servers' own, so that a kept connection is seldom one they just closed.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: usize = 64;

/// What may be called.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct TargetSettings {
    /// Lets HTTP steps and webhooks reach private addresses: `WAYPOST_ALLOW_PRIVATE_TARGETS`, 0.
    #[arg(
        id = "allow_private_targets",
        long,
        env = "WAYPOST_ALLOW_PRIVATE_TARGETS",
        value_parser = FalseyValueParser::new()
    )]
    pub allow_private: bool,
}

/// Why an address is not called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is no address that can be called.
    #[error("the address {0}")]
    Malformed(String),
    /// It leads where nobody may call.
    #[error(transparent)]
    NotPublic(#[from] target::NotPublic),
}

/// Calls addresses that users name.
#[derive(Clone, Debug)]
pub struct Targets {
    client: Client,
    allow_private: bool,
}

impl Targets {
    /// Makes the client.
    pub fn new(settings: TargetSettings) -> Result<Self, reqwest::Error> {
        // Another part of the process may have chosen the provider already: it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || client(settings.allow_private);
        let client = builder().build().or_else(|error| {
            tracing::warn!(%error, "No certificates to trust were found: HTTPS targets will fail");
            builder().tls_certs_only([]).build()
        })?;
        Ok(Self {
            client,
            allow_private: settings.allow_private,
        })
    }

    /// Begins a request to an address, unless it is one that must not be called.
    pub fn request(&self, method: Method, address: &str) -> Result<RequestBuilder, TargetError> {
        let url = self.check(address)?;
        Ok(self.client.request(method, url))
    }

    /// Judges an address as far as that can be done before it is dialled.
    pub fn check(&self, address: &str) -> Result<Url, TargetError> {
        let url = domain::webhook::check_url(address).map_err(TargetError::Malformed)?;
        if let (Some(host), false) = (url.host(), self.allow_private) {
            target::check_host(&host)?;
        }
        Ok(url)
    }
}

fn client(allow_private: bool) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .tcp_nodelay(true);
    if allow_private {
        builder
    } else {
        builder.dns_resolver(Arc::new(PublicOnly))
    }
}

/// Resolves names to those of their addresses that are public.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(public_only(found)?)
        })
    }
}

fn public_only(found: impl Iterator<Item = SocketAddr>) -> Result<Addrs, target::NotPublic> {
    let mut refused = None;
    let mut public = Vec::new();
    for address in found {
        match target::check_ip(IpAddr::to_canonical(&address.ip())) {
            Ok(()) => public.push(address),
            Err(reason) => refused = Some(reason),
        }
    }
    match refused {
        Some(reason) if public.is_empty() => Err(reason),
        _ => Ok(Box::new(public.into_iter())),
    }
}

/// What went wrong with a call, in words that hold neither the address nor what was sent.
pub fn reason(error: &reqwest::Error) -> String {
    let innermost = innermost(error);
    if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_connect() || error.is_dns() {
        format!("cannot connect: {innermost}")
    } else if error.is_builder() {
        format!("the request cannot be made: {innermost}")
    } else if error.is_body() || error.is_decode() {
        format!("the answer broke off: {innermost}")
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

/// The beginning of an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// At most as many bytes as were asked for.
    pub bytes: Bytes,
    /// Whether there was more.
    pub truncated: bool,
}

/// Reads a body up to `max` bytes; what lies behind them is left unread.
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
mod tests {
    use super::*;

    fn guarded() -> Targets {
        Targets::new(TargetSettings::default()).unwrap()
    }

    #[tokio::test]
    async fn private_addresses_are_refused_before_they_are_dialled() {
        for address in [
            "http://127.0.0.1:1/",
            "http://[::1]:1/",
            "http://localhost:1/",
            "http://LOCALHOST.:1/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let refused = guarded().request(Method::GET, address);
            let refused = refused.map(drop).unwrap_err();
            assert!(matches!(refused, TargetError::NotPublic(_)), "{address}");
        }
    }

    #[test]
    fn a_name_leads_only_to_its_public_addresses() {
        let addresses = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter()
                .map(|address| address.parse().unwrap())
                .collect()
        };
        let mixed = addresses(&["10.0.0.1:0", "1.1.1.1:0", "[::1]:0"]);
        let left: Vec<_> = public_only(mixed.into_iter())
            .map_err(drop)
            .unwrap()
            .collect();
        assert_eq!(left, addresses(&["1.1.1.1:0"]));
        let private = addresses(&["192.168.0.1:0", "[fd00::1]:0"]);
        assert!(public_only(private.into_iter()).is_err());
    }

    #[tokio::test]
    async fn a_name_with_a_private_address_is_not_dialled() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The resolver is asked past the check of the name, as any other name would be.
        let answer = guarded()
            .client
            .get(format!("http://localhost:{port}/"))
            .send()
            .await;
        let reason = reason(&answer.unwrap_err());
        assert!(reason.contains("not on the public internet"), "{reason}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody dialled");
    }
}
