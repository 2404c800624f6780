//! `GET /api/v1/orders`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use schemas::record::OrderStatus;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownStatus;
use serde::{Deserialize, Serialize};
use service::HttpError;
use sqlx::PgPool;

use super::list::{Found, ListQuery};
use crate::paging::{Listed, Page, Parameters, find_page};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{ORDERS, Within};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    id: String,
    #[serde(rename = "orderNumber")]
    number: String,
    status: String,
    amount: i64,
    plan: Option<String>,
    created_at: DateTime<Utc>,
    client: OrderClient,
    product: OrderProduct,
    #[serde(skip)]
    total: i64,
}

#[derive(Debug, Serialize)]
struct OrderClient {
    name: Option<String>,
    email: Option<String>,
}

#[derive(Debug, Serialize)]
struct OrderProduct {
    name: Option<String>,
}

/// An order as stored in its row.
#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    order_number: String,
    status: String,
    amount: i64,
    plan: Option<String>,
    client_name: Option<String>,
    client_email: Option<String>,
    product_name: Option<String>,
    created_at: DateTime<Utc>,
    #[sqlx(default)]
    total: i64,
}

impl From<Row> for Order {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            number: row.order_number,
            status: row.status,
            amount: row.amount,
            plan: row.plan,
            created_at: row.created_at,
            client: OrderClient {
                name: row.client_name,
                email: row.client_email,
            },
            product: OrderProduct {
                name: row.product_name,
            },
            total: row.total,
        }
    }
}

impl Listed for Order {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Found for Order {
    fn total(&self) -> i64 {
        self.total
    }
}

/// The columns read of a row, besides its id and its time.
const COLUMNS: &str = "order_number, status, amount, plan, client_name, client_email, product_name";

pub(super) async fn list_orders(
    reading: Reading<scope::ReadOrders>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let query = ListQuery::of(&parameters, &ORDERS)?;
    let status = asked_status(&parameters)?;
    let models = reading.models(&[Projection::Orders]).await?;
    let (org, page) = (reading.org(), &query.page);
    let within = Within::all(&ORDERS, org).of_state(status);
    if !query.search.is_plain() {
        let hits = within.find::<Row>(COLUMNS, &query.search, page, (models, reading.counts()));
        return Ok(query.answer(&uri, hits.await?.map(Order::from)));
    }
    let rows = find_orders(org, status, page, models).await?;
    let orders: Vec<Order> = rows.into_iter().map(Order::from).collect();
    let counting = (models, reading.counts());
    query.answer_rows(&uri, orders, within, counting).await
}

/// The status that a request filters by, empty if none.
fn asked_status(parameters: &Parameters) -> Result<&str, HttpError> {
    let Some(status) = parameters.one("status")? else {
        return Ok("");
    };
    let known: Result<OrderStatus, UnknownStatus> =
        OrderStatus::deserialize(status.into_deserializer());
    match known {
        Ok(_) => Ok(status),
        Err(error) => Err(HttpError::bad_request(format!("status: {error}"))),
    }
}

async fn find_orders(
    org: &OrgId,
    status: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Row>, sqlx::Error> {
    let org = org.as_str();
    // Two statements, so that each of them is planned for its own index.
    if status.is_empty() {
        find_page!(
            Row from "orders" by "id":
            r#"shown.id AS "id!", order_number AS "order_number!", status AS "status!",
               amount AS "amount!", plan, client_name, client_email, product_name,
               created_at AS "created_at!""#
            within "true", total "state = $3", (org, "", status), page, models
        )
    } else {
        find_page!(
            Row from "orders" by "id":
            r#"shown.id AS "id!", order_number AS "order_number!", status AS "status!",
               amount AS "amount!", plan, client_name, client_email, product_name,
               created_at AS "created_at!""#
            within "status = $3", total "state = $3", (org, "", status), page, models
        )
    }
}
