//! Queue of ended spans that wait to be sent. No caller ever waits for room in it.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Number of spans that may wait: a few megabytes.
const ROOM: usize = 8_192;
/// Number of spans that are sent in one request.
const AT_ONCE: usize = 512;
/// How long a span waits for others to be sent with it.
const GATHER: Duration = Duration::from_secs(1);

const EXPORTED: &str = "waypost_traces_spans_exported_total";
const DROPPED: &str = "waypost_traces_spans_dropped_total";

/// The queue's input.
#[derive(Debug)]
pub(crate) struct Queue {
    spans: mpsc::Sender<SpanData>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(span).is_err() {
            count_dropped("queue", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Asks for all waiting spans to be sent.
#[derive(Debug)]
pub(crate) struct Flush(mpsc::Sender<oneshot::Sender<()>>);

impl Flush {
    /// Waits until they were sent, or given up.
    pub(crate) async fn ask(&self) {
        let (done, sent) = oneshot::channel();
        if self.0.send(done).await.is_ok() {
            // A dropped sender means that it has ended as well.
            let _ = sent.await;
        }
    }
}

/// Starts sending the spans that enter the queue.
pub(crate) fn start(exporter: SpanExporter) -> (Queue, Flush) {
    // A counter that first appears with its first count does not look like one that has risen.
    count_dropped("queue", 0);
    count_dropped("export", 0);
    let (spans, waiting) = mpsc::channel(ROOM);
    let (flush, asked) = mpsc::channel(1);
    let sending = Sending {
        exporter,
        waiting,
        asked,
        fails: false,
    };
    tokio::spawn(sending.run());
    (Queue { spans }, Flush(flush))
}

struct Sending {
    exporter: SpanExporter,
    waiting: mpsc::Receiver<SpanData>,
    asked: mpsc::Receiver<oneshot::Sender<()>>,
    /// Whether the last batch was lost.
    fails: bool,
}

impl Sending {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(AT_ONCE);
        loop {
            tokio::select! {
                () = gather(&mut self.waiting, &mut batch) => {
                    if batch.is_empty() {
                        return;
                    }
                    self.send(&mut batch).await;
                }
                Some(done) = self.asked.recv() => {
                    while !batch.is_empty() || !self.waiting.is_empty() {
                        take(&mut self.waiting, &mut batch);
                        self.send(&mut batch).await;
                    }
                    // The caller may be gone.
                    let _ = done.send(());
                }
            }
        }
    }

    async fn send(&mut self, batch: &mut Vec<SpanData>) {
        let count = batch.len() as u64;
        match self.exporter.export(std::mem::take(batch)).await {
            Ok(()) => {
                metrics::counter!(EXPORTED).increment(count);
                if std::mem::take(&mut self.fails) {
                    tracing::info!("The collector takes spans again");
                }
            }
            Err(error) => {
                count_dropped("export", count);
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::warn!(%error, "The collector takes no spans, and they are dropped");
                }
            }
        }
    }
}

/// Waits for spans, and leaves the batch empty only if no more will come. Cancel safe: spans
/// received so far stay in the batch.
async fn gather(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    if batch.is_empty() {
        waiting.recv_many(batch, AT_ONCE).await;
    }
    let full = async {
        while batch.len() < AT_ONCE && waiting.recv_many(batch, AT_ONCE - batch.len()).await > 0 {}
    };
    // On a timeout the spans received so far are sent.
    let _ = timeout(GATHER, full).await;
}

fn take(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    while batch.len() < AT_ONCE
        && let Ok(span) = waiting.try_recv()
    {
        batch.push(span);
    }
}

fn count_dropped(reason: &'static str, count: u64) {
    metrics::counter!(DROPPED, "reason" => reason).increment(count);
}
