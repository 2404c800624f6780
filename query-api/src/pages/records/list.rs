//! `GET /dashboard/contacts` and similar pages: the list of a kind.

use axum::Extension;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use minijinja::{Value, context};
use schemas::OrgId;
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgPool};

use super::kinds::{Kind, Look, States};
use super::query::{FIELDS, FilterField, RecordsQuery};
use super::{address_of, money};
use crate::pages::amounts::grouped;
use crate::pages::frame::shown;
use crate::pages::visit::{Instead, Visit};
use crate::paging::{Grouping, Page, Parameters};
use crate::search::Within;

/// Rows per page.
const ROWS: i64 = 50;
/// From this number on the count of hits need not be exact.
const COUNTED: i64 = 10_001;
/// The number of distinct values of a field that are offered for its filter.
const OFFERED: i32 = 20;

#[derive(Debug, Serialize, sqlx::FromRow)]
struct Row {
    id: String,
    created_at: DateTime<Utc>,
    cells: Vec<Option<String>>,
}

/// A cell as displayed.
#[derive(Serialize)]
struct Cell {
    text: String,
    look: Look,
}

#[derive(Serialize)]
struct Line {
    href: String,
    name: String,
    cells: Vec<Cell>,
    created_at: DateTime<Utc>,
}

#[derive(Serialize)]
struct Choice {
    value: String,
    label: String,
}

pub(super) async fn list_records(
    Extension(kind): Extension<&'static Kind>,
    visit: Visit,
    uri: Uri,
) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let query = RecordsQuery::of(&parameters, kind)?;
    let page = Page::asked_in(&parameters, query.search.by, ROWS)?;
    let models = visit.models(&[kind.projection]).await?;
    let within = Within {
        state: &query.state,
        counted_to: Some(COUNTED),
        ..Within::all(kind.list, visit.org())
    };
    let found = within
        .find::<Row>(kind.cells, &query.search, &page, (models, visit.counts()))
        .await?;
    let mut rows = found.rows;
    // Without the position that this page may have waited for.
    let address = query.address(query.sort).parse();
    let next = page.next_link(address.as_ref().unwrap_or(&uri), &mut rows);
    let lines: Vec<Line> = rows.into_iter().map(|hit| line(kind, hit.record)).collect();
    let shown_page = visit
        .page("records.html", kind.title, kind.list.table)
        .await?
        .with_script("records.js")
        .with_style("records.css");
    Ok(shown_page.show(context! {
        kind => described(kind),
        lines => shown(&lines),
        headings => query.headings(),
        states => shown(choices(kind, visit.org(), models).await?),
        filters => shown(filters(&query, visit.org(), models).await?),
        q => query.text(),
        state => &query.state,
        sort => query.sort,
        total => grouped(found.total.min(COUNTED - 1)),
        more => found.total >= COUNTED,
        is_one => found.total == 1,
        is_all => query.is_all(),
        page => page.number(),
        first => (page.number() > 1).then(|| query.address(query.sort)),
        next => next,
    })?)
}

/// Describes a kind for all of its pages.
pub(super) fn described(kind: &Kind) -> Value {
    let formats: Vec<_> = kind
        .formats
        .iter()
        .map(|(value, label)| {
            context! { value => *value, label => *label }
        })
        .collect();
    context! {
        table => kind.list.table,
        title => kind.title,
        one => kind.one,
        with_article => kind.with_article,
        formats => formats,
    }
}

fn line(kind: &Kind, row: Row) -> Line {
    let href = address_of(kind, &row.id);
    let at = kind.columns.iter().position(|one| one.label == "Currency");
    let currency = at.and_then(|at| row.cells.get(at)?.clone());
    let currency = currency.unwrap_or_default();
    let mut cells = row
        .cells
        .into_iter()
        .zip(kind.columns)
        .map(|(text, column)| Cell {
            text: as_read(text.unwrap_or_default(), column.look, &currency),
            look: column.look,
        });
    let name = cells.next().map(|cell| cell.text).unwrap_or_default();
    let is_blank = name.trim().is_empty();
    Line {
        href,
        name: if is_blank { row.id } else { name },
        cells: cells.collect(),
        created_at: row.created_at,
    }
}

/// Formats a value for people, amounts in the record's currency.
pub(super) fn as_read(text: String, look: Look, currency: &str) -> String {
    match look {
        Look::Money => money(&text, currency),
        // The log writes a float.
        Look::Percent => text.trim_end_matches(".0").to_owned(),
        Look::Flag => match text.as_str() {
            "true" => "yes".to_owned(),
            "false" => "no".to_owned(),
            _ => text,
        },
        _ => text,
    }
}

/// Returns the filters of the list as fields of its form.
async fn filters(
    query: &RecordsQuery<'_>,
    org: &OrgId,
    models: &PgPool,
) -> Result<Vec<FilterField>, sqlx::Error> {
    let mut filters: Vec<_> = query.span_fields().collect();
    for named in FIELDS {
        if let Some(offered) = values(query.kind, named.0, org, models).await? {
            filters.push(query.field(named, offered));
        }
    }
    Ok(filters)
}

/// Returns the states that the list can be filtered by.
async fn choices(kind: &Kind, org: &OrgId, models: &PgPool) -> Result<Vec<Choice>, sqlx::Error> {
    match kind.states {
        States::None => Ok(Vec::new()),
        States::Known(states) => {
            let choice = |(value, label): &(&str, &str)| Choice {
                value: (*value).to_owned(),
                label: (*label).to_owned(),
            };
            Ok(states.iter().map(choice).collect())
        }
        States::Any => {
            let found = values(kind, Grouping::State, org, models).await?;
            let choice = |state: String| Choice {
                label: state.clone(),
                value: state,
            };
            Ok(found.unwrap_or_default().into_iter().map(choice).collect())
        }
    }
}

/// Returns the first values of a field; `None` if the kind has no such field.
async fn values(
    kind: &Kind,
    grouping: Grouping,
    org: &OrgId,
    models: &PgPool,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    let Some(statement) = kind.list.values_of(grouping) else {
        return Ok(None);
    };
    let values = sqlx::query_scalar(AssertSqlSafe(statement));
    let values = values.bind(org.as_str()).bind(OFFERED);
    values.fetch_all(models).await.map(Some)
}
