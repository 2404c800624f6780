//! Pages of a list of a million orders of one status, and of all orders, each over the first page
//! by a bare handler with one indexed query of the same table; also while more orders are imported.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use sqlx::{FromRow, PgPool};

use crate::large::fill::Fill;
use crate::load::{self, Outcome};
use crate::report::Report;
use crate::system::{System, until_ready};

const LIMIT: usize = 100;
const PAGES: [usize; 4] = [1, 100, 5_000, 10_000];
/// What five of six orders are, by the fill.
const STATUS: &str = "COMPLETED";
const CONNECTIONS: usize = 1;

/// A running query API with an organization whose orders are listed.
pub(crate) struct Lists<'a> {
    pub(crate) system: &'a System,
    pub(crate) addr: SocketAddr,
    pub(crate) org: &'a str,
    pub(crate) key: &'a str,
    /// How many orders it has.
    pub(crate) orders: usize,
    /// How many of these are of [`STATUS`].
    completed: usize,
}

/// Fills an empty log with so many orders of one organization that are completed, and a fifth as
/// many others, and measures their pages.
pub(crate) async fn measure(
    system: &System,
    completed: usize,
    time: Duration,
    report: &mut Report,
) {
    let orders = completed / 5 * 6;
    let (org, key) = system.organization().await;
    let fill = Fill::open(system.home(), system.servers.nats_url(), &org, "w").await;
    let started = Instant::now();
    fill.orders(0, orders).await;
    report.count("orders written", orders, started.elapsed());
    let started = Instant::now();
    let _projector = system.run("projector");
    projected(system).await;
    report.count("orders projected", orders, started.elapsed());
    let queries = system.run("query-api");
    until_ready(queries.addr).await;
    let lists = Lists {
        system,
        addr: queries.addr,
        org: &org,
        key: &key,
        orders,
        completed,
    };
    pages(&lists, time, report).await;
    pages_during_import(&lists, &fill, time, report).await;
}

/// Measures pages of the list that is there.
pub(crate) async fn pages(lists: &Lists<'_>, time: Duration, report: &mut Report) {
    for status in ["", STATUS] {
        let bare = first_page(lists, status, time).await;
        for page in lists.pages(status) {
            let outcome = lists.page(status, page, time).await;
            report.times(
                &format!("page {page}{}, p50, over a bare page 1", of(status)),
                outcome.percentile(50),
                bare.percentile(50),
                "2 at most",
            );
        }
    }
}

/// Measures the slowest answers while as many orders more come in.
async fn pages_during_import(lists: &Lists<'_>, fill: &Fill, time: Duration, report: &mut Report) {
    let over = AtomicBool::new(false);
    let importing = async {
        let (mut next, batch) = (lists.orders, 20_000);
        while !over.load(Ordering::Relaxed) {
            fill.orders(next, batch).await;
            next += batch;
        }
        next - lists.orders
    };
    let reading = async {
        for status in ["", STATUS] {
            let bare = first_page(lists, status, time).await;
            for page in lists.pages(status) {
                let outcome = lists.page(status, page, time).await;
                report.times(
                    &format!("page {page}{} during an import, p99", of(status)),
                    outcome.percentile(99),
                    bare.percentile(99),
                    "2 at most",
                );
            }
        }
        over.store(true, Ordering::Relaxed);
    };
    let started = Instant::now();
    let (imported, ()) = tokio::join!(importing, reading);
    report.count("orders written meanwhile", imported, started.elapsed());
}

impl Lists<'_> {
    /// The pages that the list has of those that are measured.
    fn pages(&self, status: &str) -> impl Iterator<Item = usize> {
        let listed = match status {
            "" => self.orders,
            _ => self.completed,
        };
        PAGES.into_iter().filter(move |page| page * LIMIT <= listed)
    }

    async fn page(&self, status: &str, page: usize, time: Duration) -> Outcome {
        let path = format!("/api/v1/orders?limit={LIMIT}&page={page}{}", filter(status));
        let request = load::get(&path, self.key, "");
        asked(self.addr, request, time).await
    }
}

/// What a bare handler takes for the first page.
async fn first_page(lists: &Lists<'_>, status: &str, time: Duration) -> Outcome {
    let role = ["--first-page", lists.org];
    let bare = lists.system.spawn_self(&role).await;
    let path = format!("/orders?limit={LIMIT}{}", filter(status));
    asked(bare.addr, load::get(&path, "none", ""), time).await
}

/// Asks for the same page again and again, after a moment to warm up.
async fn asked(addr: SocketAddr, request: Vec<u8>, time: Duration) -> Outcome {
    let requests = Arc::new(vec![request]);
    load::run(addr, CONNECTIONS, time / 4, "200", requests.clone()).await;
    let outcome = load::run(addr, CONNECTIONS, time, "200", requests).await;
    assert_eq!(outcome.other, 0, "every page is there");
    outcome
}

fn filter(status: &str) -> String {
    match status {
        "" => String::new(),
        status => format!("&status={status}"),
    }
}

fn of(status: &str) -> String {
    match status {
        "" => String::new(),
        status => format!(" of {status}"),
    }
}

async fn projected(system: &System) {
    loop {
        let listed = system.waypost(&["projection", "list"]).await;
        let projections = listed["projections"].as_array().expect("projections");
        let mut lags = projections.iter().filter_map(|one| one["lag"].as_u64());
        if !projections.is_empty() && lags.all(|lag| lag == 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[derive(Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: String,
    order_number: String,
    status: String,
    amount: i64,
    plan: Option<String>,
    created_at: DateTime<Utc>,
    client_name: Option<String>,
    client_email: Option<String>,
    product_name: Option<String>,
}

#[derive(Serialize)]
struct Orders {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Asked {
    limit: i64,
    status: Option<String>,
}

/// Serves the first page of an organization's orders until killed: no key, no total, no number.
pub(crate) async fn serve_first_page(addr: SocketAddr, org: &str) {
    let database = std::env::var("DATABASE_URL").expect("DATABASE_URL");
    let pool = PgPoolOptions::new()
        .max_connections(16)
        .connect(&database)
        .await;
    let router = Router::new()
        .route("/orders", get(list_orders))
        .with_state((pool.expect("Postgres"), Arc::<str>::from(org)));
    let listener = service::listen(addr).await.expect("a listener");
    axum::serve(listener, router).await.expect("serving");
}

async fn list_orders(
    State((pool, org)): State<(PgPool, Arc<str>)>,
    Query(Asked { limit, status }): Query<Asked>,
) -> Result<Json<Orders>, StatusCode> {
    let found = match &status {
        None => sqlx::query_as::<_, Row>(
            "SELECT id, order_number, status, amount, plan, created_at, client_name,
                    client_email, product_name
             FROM orders WHERE org_id = $1 ORDER BY created_at DESC, id LIMIT $2",
        )
        .bind(&*org)
        .bind(limit),
        Some(status) => sqlx::query_as::<_, Row>(
            "SELECT id, order_number, status, amount, plan, created_at, client_name,
                    client_email, product_name
             FROM orders WHERE org_id = $1 AND status = $3
             ORDER BY created_at DESC, id LIMIT $2",
        )
        .bind(&*org)
        .bind(limit)
        .bind(status),
    };
    match found.fetch_all(&pool).await {
        Ok(data) => Ok(Json(Orders { data })),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
