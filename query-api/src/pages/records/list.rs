//! `GET /dashboard/contacts` and its likes: a kind's list.

use axum::Extension;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use minijinja::{Value, context};
use schemas::OrgId;
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgPool};

use super::kinds::{Kind, Look, States};
use super::{address_of, money};
use crate::pages::address::encoded;
use crate::pages::amounts::grouped;
use crate::pages::frame::shown;
use crate::pages::visit::{Instead, Visit};
use crate::paging::{Page, Parameters};
use crate::search::{Search, Within};

/// How many rows a page shows.
const ROWS: i64 = 50;
/// Where what was found need not be told exactly any more.
const COUNTED: i64 = 10_001;
/// How many different states are offered as filters.
const STATES: usize = 20;

#[derive(Debug, Serialize, sqlx::FromRow)]
struct Row {
    id: String,
    created_at: DateTime<Utc>,
    cells: Vec<Option<String>>,
}

/// A cell as it is read.
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

/// A heading, and where it leads.
#[derive(Serialize)]
struct Heading {
    label: &'static str,
    look: Look,
    href: Option<String>,
    /// As `aria-sort` has it.
    sorted: Option<&'static str>,
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
    let search = Search::asked_for(&parameters, kind.list)?;
    let page = Page::asked_in(&parameters, search.by, ROWS)?;
    let state = parameters.one("status")?.unwrap_or_default();
    let models = visit.models(&[kind.projection]).await?;
    let within = Within {
        state,
        counted_to: Some(COUNTED),
        ..Within::all(kind.list, visit.org())
    };
    let found = within
        .find::<Row>(kind.cells, &search, &page, (models, visit.counts()))
        .await?;
    let mut rows = found.rows;
    let asked = Asked {
        kind,
        text: search.text.as_deref().unwrap_or_default(),
        state,
        sort: parameters.one("sort")?,
    };
    // Without the position that this page may have waited for.
    let address = asked.address(asked.sort).parse();
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
        headings => shown(asked.headings()),
        created => shown(asked.heading("Created", Look::Text, Some("createdAt"))),
        states => shown(choices(kind, visit.org(), models).await?),
        q => asked.text,
        state => state,
        sort => asked.sort,
        total => grouped(found.total.min(COUNTED - 1)),
        more => found.total >= COUNTED,
        is_one => found.total == 1,
        is_all => asked.text.is_empty() && state.is_empty(),
        page => page.number(),
        first => (page.number() > 1).then(|| asked.address(asked.sort)),
        next => next,
    })?)
}

/// What of a kind every page shows.
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

/// A value as people read it, amounts in the record's currency.
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

/// What a list is asked for, and the addresses of what could be asked for instead.
struct Asked<'a> {
    kind: &'static Kind,
    text: &'a str,
    state: &'a str,
    sort: Option<&'a str>,
}

impl Asked<'_> {
    fn address(&self, sort: Option<&str>) -> String {
        let mut address = format!("/dashboard/{}", self.kind.list.table);
        let sort = sort.unwrap_or_default();
        let mut between = '?';
        for (name, value) in [("q", self.text), ("status", self.state), ("sort", sort)] {
            if !value.is_empty() {
                address.push(between);
                address.push_str(name);
                address.push('=');
                address.push_str(&encoded(value));
                between = '&';
            }
        }
        address
    }

    fn headings(&self) -> Vec<Heading> {
        let columns = self.kind.columns.iter();
        columns
            .map(|column| self.heading(column.label, column.look, column.sort))
            .collect()
    }

    /// A heading that sorts by its column, and by the other direction once it does.
    fn heading(&self, label: &'static str, look: Look, sort: Option<&'static str>) -> Heading {
        let now = self.sort.unwrap_or("-createdAt");
        let (by, descends) = match now.strip_prefix('-') {
            Some(by) => (by, true),
            None => (now, false),
        };
        let is_sorted = sort == Some(by);
        // Names are looked for from A, amounts and times from the greatest.
        let descend = if is_sorted {
            !descends
        } else {
            sort != Some("name")
        };
        let sign = if descend { "-" } else { "" };
        Heading {
            label,
            look,
            href: sort.map(|sort| self.address(Some(&format!("{sign}{sort}")))),
            sorted: is_sorted.then_some(if descends { "descending" } else { "ascending" }),
        }
    }
}

/// The states that the list can be filtered by.
async fn choices(kind: &Kind, org: &OrgId, models: &PgPool) -> Result<Vec<Choice>, sqlx::Error> {
    let column = match kind.states {
        States::None => return Ok(Vec::new()),
        States::Known(states) => {
            let choice = |(value, label): &(&str, &str)| Choice {
                value: (*value).to_owned(),
                label: (*label).to_owned(),
            };
            return Ok(states.iter().map(choice).collect());
        }
        States::Any(column) => column,
    };
    let table = kind.list.table;
    // From each value straight to the next one in the index, however many rows have it.
    let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!(
        "WITH RECURSIVE states AS (
             (SELECT {column} AS state FROM {table}
              WHERE org_id = $1 AND {column} IS NOT NULL ORDER BY {column} LIMIT 1)
             UNION ALL
             SELECT (SELECT {column} FROM {table}
                     WHERE org_id = $1 AND {column} > states.state ORDER BY {column} LIMIT 1)
             FROM states WHERE states.state IS NOT NULL
         )
         SELECT state FROM states WHERE state IS NOT NULL LIMIT {STATES}"
    )))
    .bind(org.as_str())
    .fetch_all(models)
    .await?;
    let choice = |state: String| Choice {
        label: state.clone(),
        value: state,
    };
    Ok(found.into_iter().map(choice).collect())
}
