use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::BodyDataStream;
use tokio::time::{advance, timeout};

use super::*;

const LIMITS: StreamLimits = StreamLimits {
    kind: "test",
    stall: Duration::from_mins(1),
    least_rate: 1_000,
    deadline: None,
};

/// Counts the pieces that were made of a response, and reports when it is dropped.
struct Made {
    pieces: Arc<AtomicUsize>,
    _held: oneshot::Sender<()>,
}

/// Pieces of a hundred bytes without end.
fn endless() -> (
    impl Stream<Item = Result<Bytes, Infallible>> + Send,
    Arc<AtomicUsize>,
    oneshot::Receiver<()>,
) {
    let (held, let_go) = oneshot::channel();
    let pieces = Arc::new(AtomicUsize::new(0));
    let made = Made {
        pieces: pieces.clone(),
        _held: held,
    };
    let all = stream::unfold(made, async |made| {
        made.pieces.fetch_add(1, Ordering::Relaxed);
        Some((Ok(Bytes::from_static(&[b'x'; 100])), made))
    });
    (all, pieces, let_go)
}

fn begin(limits: StreamLimits) -> (BodyDataStream, Arc<AtomicUsize>, oneshot::Receiver<()>) {
    let (pieces, made, let_go) = endless();
    let body = outflow(pieces, limits, pending(), AtKeyEnd::BreakOff);
    (body.into_data_stream(), made, let_go)
}

/// Reads the rest of the body, in which an error can only come last.
async fn rest(body: BodyDataStream) -> Result<usize, axum::Error> {
    let pieces: Vec<_> = body.collect().await;
    pieces
        .into_iter()
        .try_fold(0, |sum, piece| Ok(sum + piece.map(|_| 1)?))
}

#[tokio::test(start_paused = true)]
async fn all_pieces_come_in_order_and_end() {
    let pieces = stream::iter((0..100).map(|n| Ok::<_, Infallible>(Bytes::from(vec![n]))));
    let body = outflow(pieces, LIMITS, pending(), AtKeyEnd::BreakOff);
    let all = axum::body::to_bytes(body, 1_000).await.unwrap();
    assert_eq!(all, (0..100).collect::<Vec<u8>>());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_holds_two_pieces_and_is_given_up() {
    let (body, made, let_go) = begin(LIMITS);
    let_go.await.unwrap_err();
    assert_eq!(made.load(Ordering::Relaxed), 2);
    rest(body).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_too_little_is_given_up() {
    let (mut body, _, let_go) = begin(LIMITS);
    let slowly = async {
        let mut taken = 0;
        while let Some(Ok(_)) = body.next().await {
            taken += 1;
            advance(Duration::from_secs(10)).await;
            tokio::task::yield_now().await;
        }
        taken
    };
    // 10 bytes a second, which is waited for as long as no bytes at all.
    let taken = timeout(Duration::from_hours(1), slowly).await.unwrap();
    assert!((6..=9).contains(&taken), "{taken}");
    let_go.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_at_its_deadline() {
    let deadline = Some(Instant::now() + Duration::from_secs(5));
    let limits = StreamLimits { deadline, ..LIMITS };
    let nothing = stream::pending::<Result<Bytes, Infallible>>();
    let body = outflow(nothing, limits, pending(), AtKeyEnd::BreakOff);
    rest(body.into_data_stream()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_source_of_a_body_is_dropped_once_its_client_has_left() {
    let (body, _, let_go) = begin(LIMITS);
    drop(body);
    let_go.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_once_the_key_has_ended() {
    for (at_key_end, broken) in [(AtKeyEnd::BreakOff, true), (AtKeyEnd::End, false)] {
        let (end, ended) = oneshot::channel::<()>();
        let (pieces, _, let_go) = endless();
        let ended = async { ended.await.unwrap_or_default() };
        let mut body = outflow(pieces, LIMITS, ended, at_key_end).into_data_stream();
        body.next().await.unwrap().unwrap();
        end.send(()).unwrap();
        let_go.await.unwrap_err();
        let rest = rest(body).await;
        assert_eq!(rest.is_err(), broken, "{at_key_end:?}");
        assert_eq!(rest.unwrap_or_default(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_making_fails_is_not_taken_for_a_whole_one() {
    let pieces = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"x")) });
    let pieces = pieces.chain(stream::once(async { panic!("while it is made") }));
    let body = outflow(pieces, LIMITS, pending(), AtKeyEnd::BreakOff);
    rest(body.into_data_stream()).await.unwrap_err();
}
