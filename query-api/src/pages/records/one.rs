//! `GET /dashboard/contacts/{id}` and similar pages: a record with its history.

use axum::Extension;
use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::Revision;
use minijinja::{Value, context};
use schemas::StreamId;
use serde::Serialize;
use service::HttpError;

use super::history::{self, History};
use super::kinds::{Field, Kind, Look, States};
use super::list::{as_read, described};
use crate::pages::amounts::DECIMALS;
use crate::pages::frame::{piece, shown};
use crate::pages::visit::{Instead, Visit};
use crate::paging::Parameters;
use crate::reading::ResourceId;
use crate::state::State;

#[derive(sqlx::FromRow)]
struct Row {
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    cells: Vec<Option<String>>,
}

/// A field with its value, for the form and for reading.
#[derive(Serialize)]
struct Filled {
    #[serde(flatten)]
    field: &'static Field,
    value: String,
    text: String,
    choices: Vec<(&'static str, &'static str)>,
}

pub(super) async fn show_record(
    Extension(kind): Extension<&'static Kind>,
    visit: Visit,
    AppState(state): AppState<State>,
    ResourceId(id): ResourceId,
    uri: Uri,
) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let before = history::before(&state.log, parameters.one("before")?)?;
    let models = visit.models(&[kind.projection]).await?;
    let found = sqlx::query_as::<_, Row>(kind.record);
    let found = found.bind(visit.org().as_str()).bind(&id);
    let row = found.fetch_optional(models).await?;
    let stream = StreamId::new(visit.org(), kind.aggregate, id.as_str());
    let history = History::read(&state.log, &stream, before).await;
    let history = match history {
        Some(history) => Some(
            history
                .describe(kind, &state.log, visit.org(), models)
                .await?,
        ),
        None => None,
    };
    let is_known = row.is_some()
        || history
            .as_ref()
            .is_some_and(|history| !history.changes.is_empty());
    if !is_known && before.is_none() {
        return Err(HttpError::not_found(format!("{} not found", kind.one)).into());
    }
    let name = row.as_ref().map(|row| name_of(kind, &row.cells, &id));
    let page = visit
        .page("record.html", kind.title, kind.list.table)
        .await?
        .with_script("records.js")
        .with_style("records.css");
    let fields = row
        .as_ref()
        .map(|row| filled(kind, row.cells.iter().cloned()));
    let form = fields.as_ref().map(form_of).transpose()?;
    Ok(page.show(context! {
        kind => described(kind),
        name => name.unwrap_or_else(|| id.clone()),
        id => id,
        etag => row.as_ref().map(|row| Revision::of_record(row.updated_at).etag()),
        created_at => row.as_ref().map(|row| shown(row.created_at)),
        updated_at => row.as_ref().map(|row| shown(row.updated_at)),
        fields => fields.map(shown),
        form => form,
        history => history.map(shown),
        is_older => before.is_some(),
    })?)
}

pub(super) async fn new_record(
    Extension(kind): Extension<&'static Kind>,
    visit: Visit,
) -> Result<Response, Instead> {
    let page = visit
        .page("record_new.html", "New", kind.list.table)
        .await?
        .with_script("records.js")
        .with_style("records.css");
    let nothing = kind.fields.iter().map(|_| None);
    let form = form_of(&filled(kind, nothing))?;
    Ok(page.show(context! { kind => described(kind), form => form })?)
}

/// Renders the fields of the form.
fn form_of(fields: &Vec<Filled>) -> Result<Value, HttpError> {
    piece(
        "record_fields.html",
        context! { fields => shown(fields), decimals => DECIMALS },
    )
}

fn filled(kind: &'static Kind, values: impl IntoIterator<Item = Option<String>>) -> Vec<Filled> {
    let values: Vec<Option<String>> = values.into_iter().collect();
    let at = kind.fields.iter().position(|one| one.name == "currency");
    let currency = at.and_then(|at| values.get(at)?.clone());
    let currency = currency.unwrap_or_default();
    let fields = kind.fields.iter().zip(values);
    let filled = fields.map(|(field, value)| {
        let value = value.unwrap_or_default();
        Filled {
            text: as_read(value.clone(), field.look, &currency),
            value: match field.look {
                Look::Money => super::money(&value, &currency).replace(',', ""),
                _ => value,
            },
            choices: match (field.look, kind.states) {
                (Look::Status, States::Known(states)) => states.to_vec(),
                _ => Vec::new(),
            },
            field,
        }
    });
    filled.collect()
}

/// Returns the display name of a record: its first non-empty field. A contact has two names.
fn name_of(kind: &Kind, values: &[Option<String>], id: &str) -> String {
    let names = match kind.fields {
        [first, ..] if first.name == "firstName" => 2,
        _ => 1,
    };
    let given = values.iter().take(names).flatten().map(String::as_str);
    let name = given.collect::<Vec<_>>().join(" ");
    match (name.trim(), values.get(2)) {
        ("", Some(Some(email))) if names == 2 && !email.trim().is_empty() => email.clone(),
        ("", _) => id.to_owned(),
        (name, _) => name.to_owned(),
    }
}
