//! A background task whose owner waits for it.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio_util::task::AbortOnDropHandle;

/// A future that runs in the background while its owner does something else, and ends with its
/// owner. Code that holds something others wait for, or keeps time, must not stall because its
/// owner is busy.
#[must_use]
#[derive(Debug)]
pub(crate) struct Task<T>(AbortOnDropHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(AbortOnDropHandle::new(tokio::spawn(future)))
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// A panic of the task continues in the waiting caller.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(done) => Poll::Ready(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down, and the waiting caller with it.
                Err(_) => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn it_goes_on_while_nobody_looks_and_ends_with_its_owner() {
        let (done, seen) = oneshot::channel();
        let task = Task::spawn(async move { done.send(7).unwrap() });
        assert_eq!(seen.await, Ok(7));
        task.await;
        let (held, gone) = oneshot::channel::<()>();
        let task = Task::spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        drop(task);
        let gone = timeout(Duration::from_secs(10), gone).await;
        assert!(gone.unwrap().is_err());
    }
}
