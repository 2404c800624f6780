//! Context of a request besides its contents.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use schemas::{Actor, Context, OrgId, Traceparent};
use traces::Span;
use uuid::Uuid;

/// The request's trace and id, and, once known, its organization. Cheap to clone; all clones share
/// one state.
#[derive(Clone, Debug)]
pub struct RequestContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    traceparent: Traceparent,
    correlation_id: Uuid,
    org: OnceLock<OrgId>,
    actor: OnceLock<Actor>,
    answer_headers: Mutex<Vec<(HeaderName, HeaderValue)>>,
}

impl RequestContext {
    /// Continues the trace that the headers name, or begins one.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let correlation_id = Uuid::new_v4();
        let (_, span) = correlation_id.as_u64_pair();
        let traceparent = senders(headers).map_or_else(
            // A trace that begins here has the id of its request.
            || Traceparent::from_parts(correlation_id.as_u128(), span),
            |sender| sender.with_span(span),
        );
        Self::new(correlation_id, traceparent)
    }

    /// The same with a span for the request, if traces are recorded.
    pub(crate) fn traced(headers: &HeaderMap) -> (Self, Span) {
        let sender = senders(headers);
        let Some((span, traceparent)) = traces::of_request(sender.as_ref()) else {
            return (Self::from_headers(headers), Span::default());
        };
        let begins_here = sender.is_none();
        let named = begins_here.then(|| Uuid::try_parse(traceparent.trace_id()).ok());
        let correlation_id = named.flatten().unwrap_or_else(Uuid::new_v4);
        (Self::new(correlation_id, traceparent), span)
    }

    fn new(correlation_id: Uuid, traceparent: Traceparent) -> Self {
        Self(Arc::new(Inner {
            traceparent,
            correlation_id,
            org: OnceLock::new(),
            actor: OnceLock::new(),
            answer_headers: Mutex::default(),
        }))
    }

    /// The trace context, with this request's own span.
    pub fn traceparent(&self) -> &Traceparent {
        &self.0.traceparent
    }

    /// The id of this request, shared by everything that follows from it.
    pub fn correlation_id(&self) -> Uuid {
        self.0.correlation_id
    }

    /// The context recorded on the events that this request leads to.
    pub fn context(&self) -> Context {
        let request = self.0.correlation_id.to_string();
        Context {
            correlation_id: Some(request.clone()),
            causation_id: Some(request),
            traceparent: Some(self.0.traceparent.clone()),
            hops: 0,
            cause: None,
            actor: self.0.actor.get().cloned(),
        }
    }

    /// Sets the organization of the request, for the log line.
    pub fn identify(&self, org: &OrgId) {
        // A request has one caller: a second call can only repeat it.
        let _ = self.0.org.set(org.clone());
    }

    /// Sets the sender, for the events that the request leads to.
    pub fn sent_by(&self, actor: Actor) {
        // A request has one sender: a second call can only repeat it.
        let _ = self.0.actor.set(actor);
    }

    /// The organization of the request, once known.
    pub fn org(&self) -> Option<&OrgId> {
        self.0.org.get()
    }

    /// Adds a header to the response, whatever it will be, even a later extractor's error or a
    /// panic.
    pub fn answer_with(&self, name: HeaderName, value: HeaderValue) {
        self.answer_headers().push((name, value));
    }

    pub(crate) fn put_answer_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in self.answer_headers().drain(..) {
            headers.insert(name, value);
        }
    }

    fn answer_headers(&self) -> std::sync::MutexGuard<'_, Vec<(HeaderName, HeaderValue)>> {
        let headers = self.0.answer_headers.lock();
        headers.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The trace context that the client sent.
fn senders(headers: &HeaderMap) -> Option<Traceparent> {
    Traceparent::parse(headers.get("traceparent")?.to_str().ok()?)
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        if let Some(context) = parts.extensions.get::<Self>() {
            return Ok(context.clone());
        }
        let context = Self::from_headers(&parts.headers);
        parts.extensions.insert(context.clone());
        Ok(context)
    }
}
