//! The layer between a connection and the router: determines the client, watches the body, and
//! decides whether the connection can be reused after the response.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use axum::{Error, Router};
use bytes::Bytes;
use futures::future::{self, BoxFuture};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::service::Service;
use tower::Service as _;

use super::arriving::{Arriving, Terms};
use super::life::{Life, UnderWay};
use super::places::{ClientCount, Places, Refused};
use super::{answers, note_refusal};
use crate::client::{Client, Networks};
use crate::memory::Memory;

/// State shared by all connections of a process.
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) trusted: Networks,
    pub(super) memory: Arc<Memory>,
    pub(super) places: Arc<Places>,
    pub(super) terms: Terms,
}

/// Answers the requests of one connection.
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Arc<Life>,
    pub(super) peer: SocketAddr,
}

impl Service<Request<Incoming>> for Front {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let under_way = self.life.begin();
        let shared = &self.shared;
        let (mut parts, body) = request.into_parts();
        let client = Client::of(self.peer, &parts.headers, &shared.trusted, &shared.memory);
        let count = match shared.places.take_for(client.address(), self.peer.ip()) {
            Ok(count) => count,
            Err(refused) => return Box::pin(future::ok(too_many(refused, under_way))),
        };
        parts.extensions.insert(client);
        parts.extensions.insert(ConnectInfo(self.peer));
        let (body, fate) = if body.is_end_stream() {
            (Body::empty(), None)
        } else {
            let awaited = parts.headers.contains_key(header::EXPECT);
            let mut terms = shared.terms;
            if is_last(&parts) {
                terms.drain_bytes = 0;
            }
            let (body, fate) = Arriving::new(body, awaited, terms, under_way.clone());
            (Body::new(body), Some(fate))
        };
        let answered = shared.router.clone().call(Request::from_parts(parts, body));
        let life = Arc::clone(&self.life);
        Box::pin(async move {
            let mut response = answered.await?;
            if fate.is_some_and(|fate| fate.ends_connection()) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            let count = if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                life.upgrade(count);
                None
            } else {
                count
            };
            Ok(response.map(|body| AnswerBody {
                body,
                _under_way: under_way,
                _count: count,
            }))
        })
    }
}

/// Whether the client wants no further request answered on this connection: then the body need not
/// be drained for one.
fn is_last(parts: &Parts) -> bool {
    let named = parts.headers.get_all(header::CONNECTION).iter();
    let mut options = named.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    parts.version == Version::HTTP_10
        || options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// 429 to a client behind a proxy that has used up its share of connections.
fn too_many(refused: Refused, under_way: UnderWay) -> Response<AnswerBody> {
    note_refusal(refused);
    let response = answers::SHARE_TAKEN.response();
    response.map(|body| AnswerBody {
        body,
        _under_way: under_way,
        _count: None,
    })
}

/// The body of a response; the request is in progress until it is dropped.
pub(super) struct AnswerBody {
    body: Body,
    _under_way: UnderWay,
    _count: Option<ClientCount>,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
