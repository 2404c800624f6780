//! Futures that run within a span.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::Span;

pin_project! {
    /// A future that runs within a span: spans made in it are children of that span.
    #[derive(Debug)]
    pub struct Within<F> {
        #[pin]
        inner: F,
        span: Span,
    }
}

/// Extension that runs a future within a span.
pub trait Traced: Future + Sized {
    /// Runs the future within a span, which lasts at least until the future is dropped.
    fn within(self, span: &Span) -> Within<Self> {
        Within {
            inner: self,
            span: span.clone(),
        }
    }
}

impl<F: Future> Traced for F {}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _within = this.span.enter();
        this.inner.poll(task)
    }
}
