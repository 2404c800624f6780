//! Where a request comes from.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use service::Client;

/// The client's address: the other end of the connection, or as reported by trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let client = parts.extensions.get::<Client>();
        // Without a connection (a router called directly) all clients are one.
        let address = client.map_or(Ipv4Addr::UNSPECIFIED.into(), Client::address);
        Ok(Self(address))
    }
}
