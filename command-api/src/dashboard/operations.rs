//! `POST /dashboard/system/operations`, `DELETE /dashboard/system/operations/{id}`: operations that
//! operators of the installation request and the projector performs.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::operation::OperationKind;
use serde::Deserialize;
use serde_json::json;
use service::HttpError;
use sqlx::PgPool;
use uuid::Uuid;

use super::origin::OperatorOnPage;
use crate::App;
use crate::accounts::NOT_KEPT;
use crate::body::SmallBody;

/// Where operations are requested; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Operations(PgPool);

impl Operations {
    /// Requests operations in the database of the read models.
    pub(crate) fn new(models: PgPool) -> Self {
        Self(models)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperationRequest {
    kind: String,
    projection: String,
    /// One dead letter, by its sequence.
    letter: Option<i64>,
    /// Or all up to this one.
    up_to: Option<i64>,
    /// The number of these that the caller was shown.
    count: Option<i64>,
}

/// The subject of an operation.
enum Subject {
    Projection,
    Letter(i64),
    Letters { up_to: i64, count: i64 },
}

impl OperationRequest {
    fn read(&self) -> Result<(OperationKind, Subject), HttpError> {
        let kind = OperationKind::parse(&self.kind).ok_or_else(|| {
            HttpError::bad_request("kind: must be rebuild, verify, retry or skip")
        })?;
        let subject = match (kind.is_about_letters(), self.letter, self.up_to, self.count) {
            (false, None, None, None) => Subject::Projection,
            (true, Some(letter), None, None) => Subject::Letter(letter),
            (true, None, Some(up_to), Some(count)) => Subject::Letters { up_to, count },
            (true, ..) => {
                let message = "letter: name one dead letter, or all of them by upTo and count";
                return Err(HttpError::bad_request(message));
            }
            (false, ..) => {
                let message = "letter: a projection is rebuilt and verified as a whole";
                return Err(HttpError::bad_request(message));
            }
        };
        Ok((kind, subject))
    }
}

pub(super) async fn ask_for_operation(
    OperatorOnPage(operator): OperatorOnPage,
    State(app): State<App>,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let request: OperationRequest = serde_json::from_value(body.value()?)
        .map_err(|error| HttpError::bad_request(format!("the body is not valid: {error}")))?;
    let (kind, subject) = request.read()?;
    let Operations(models) = &app.operations;
    let known = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM projection_checkpoints WHERE name = $1) AS "known!""#,
        request.projection,
    );
    if !known.fetch_one(models).await? {
        return Err(HttpError::not_found("projection not found"));
    }
    let letters = dead_letters_of(models, &request.projection, subject).await?;
    let id = app.commands.random.id();
    let (account, kind) = (operator.staff().person.account_id, kind.as_str());
    tracing::info!(%account, kind, projection = request.projection, "An operator asks for an operation");
    let written = sqlx::query!(
        "INSERT INTO projection_operations (operation_id, kind, projection, letters)
         VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        id,
        kind,
        request.projection,
        &letters,
    );
    if written.execute(models).await?.rows_affected() == 0 {
        let message = format!("{} is already under way: {kind}", request.projection);
        return Err(HttpError::conflict(message));
    }
    let answer = axum::Json(json!({ "id": id, "letters": letters.len() }));
    Ok((StatusCode::ACCEPTED, NOT_KEPT, answer).into_response())
}

/// Returns the selected dead letters that currently exist.
async fn dead_letters_of(
    models: &PgPool,
    projection: &str,
    subject: Subject,
) -> Result<Vec<i64>, HttpError> {
    let (from, to) = match subject {
        Subject::Projection => return Ok(Vec::new()),
        Subject::Letter(letter) => (letter, letter),
        Subject::Letters { up_to, .. } => (0, up_to),
    };
    let found = sqlx::query_scalar!(
        "SELECT sequence FROM dead_letters
         WHERE projection = $1 AND sequence BETWEEN $2 AND $3 AND reason IS NOT NULL
         ORDER BY sequence",
        projection,
        from,
        to,
    )
    .fetch_all(models)
    .await?;
    match subject {
        Subject::Letters { count, .. } if i64::try_from(found.len()) != Ok(count) => {
            let now = found.len();
            Err(HttpError::conflict(format!(
                "count: these dead letters are {now} now; reload the page and look again"
            )))
        }
        _ if found.is_empty() => Err(HttpError::not_found("dead letter not found")),
        _ => Ok(found),
    }
}

pub(super) async fn cancel_operation(
    _: OperatorOnPage,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, HttpError> {
    let Operations(models) = &app.operations;
    let cancelled = sqlx::query!(
        "UPDATE projection_operations SET is_cancelled = true
         WHERE operation_id = $1 AND ended_at IS NULL",
        id,
    );
    match cancelled.execute(models).await?.rows_affected() {
        0 => Err(HttpError::not_found("no such operation is under way")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}
