//! `DELETE /circles/{id}/members/me`: leaves a circle.

use access::AccountToken;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::circles::{self, Circle, NotMember};
use schemas::CircleId;
use service::HttpError;

use super::stream;
use crate::commands::{Decision, Past};
use crate::{App, CommandError, Done, Origin, answer};

pub(super) async fn leave_circle(
    caller: AccountToken,
    State(app): State<App>,
    Path(id): Path<CircleId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let stream = stream(&app.circles.org_of(&id), &id);
    let left = app
        .commands
        .execute(&origin, &stream, Past::Whole, |past, _| {
            let circle = Circle::fold(past);
            let event = circles::leave(circle.as_ref(), caller.account_id)?;
            Ok(Decision::new((), Some(event)))
        });
    let left: Result<Done<()>, CommandError<NotMember>> = left.await;
    let done = left?;
    app.circles.learn(done.position, &origin).await;
    Ok(answer::no_content(&done))
}
