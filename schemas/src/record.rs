//! Events of business records: each carries the whole record, so that the last one is its state.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RecordId;

/// A contact as it was written. `updatedAt` is the event's own time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    /// The contact.
    pub id: RecordId,
    /// Given name.
    pub first_name: Option<String>,
    /// Family name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Phone number as it was given.
    pub phone: Option<String>,
    /// Position at work.
    pub job_title: Option<String>,
    /// The company's record, as it was written (it need not exist).
    pub company_id: Option<String>,
    /// The company's name, as it was written.
    pub company_name: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country: Option<String>,
    /// Who looks after the contact.
    pub owner: Option<String>,
    /// When the contact came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A company as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Company {
    /// The company.
    pub id: RecordId,
    /// Its name.
    pub name: String,
    /// Its domain on the internet.
    pub domain: Option<String>,
    /// What it does.
    pub industry: Option<String>,
    /// Phone number as it was given.
    pub phone: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Street address.
    pub address: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country: Option<String>,
    /// How many people work there.
    pub employees: Option<i64>,
    /// What it turns over in a year.
    pub annual_revenue: Option<i64>,
    /// Who looks after the company.
    pub owner: Option<String>,
    /// When the record came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A deal as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deal {
    /// The deal.
    pub id: RecordId,
    /// What it is about.
    pub title: String,
    /// How far it is.
    pub stage: Option<String>,
    /// What it is worth, in minor units of `currency`.
    pub amount: Option<i64>,
    /// The currency.
    pub currency: Option<String>,
    /// How likely it is to be won, in percent.
    pub probability: Option<f64>,
    /// The company's record, as it was written (it need not exist).
    pub company_id: Option<String>,
    /// The company's name, as it was written.
    pub company_name: Option<String>,
    /// The contact's record, as it was written (it need not exist).
    pub contact_id: Option<String>,
    /// The contact's name, as it was written.
    pub contact_name: Option<String>,
    /// Who looks after the deal.
    pub owner: Option<String>,
    /// The day on which it should be closed.
    pub expected_close_date: Option<NaiveDate>,
    /// When the record came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// Where an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OrderStatus {
    /// Not paid yet.
    PaymentPending,
    /// Paid, under way.
    Active,
    /// Done.
    Completed,
    /// Called off.
    Cancelled,
}

/// Who ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderClient {
    /// The client's name.
    pub name: Option<String>,
    /// The client's e-mail address.
    pub email: Option<String>,
}

/// What was ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderProduct {
    /// The product's name.
    pub name: Option<String>,
}

/// An order as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The order.
    pub id: RecordId,
    /// Its number as people know it.
    pub order_number: String,
    /// Where it stands.
    pub status: OrderStatus,
    /// What it costs, in minor units.
    pub amount: i64,
    /// The plan that was ordered.
    pub plan: Option<String>,
    /// Who ordered.
    pub client: OrderClient,
    /// What was ordered.
    pub product: OrderProduct,
    /// When the record came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A lead as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lead {
    /// The lead.
    pub id: RecordId,
    /// The person's name.
    pub name: String,
    /// Phone number as it was given.
    pub phone: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// What the person asked for.
    pub service: Option<String>,
    /// Where the person came from.
    pub source: Option<String>,
    /// Where it stands.
    pub status: Option<String>,
    /// How promising it is.
    pub score: i64,
    /// When the record came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A client as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The client.
    pub id: RecordId,
    /// The client's name.
    pub name: String,
    /// E-mail address.
    pub email: Option<String>,
    /// Phone number as it was given.
    pub phone: Option<String>,
    /// The company's name.
    pub company: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Whether business goes on.
    pub is_active: bool,
    /// When the record came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A record was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The record.
    pub id: RecordId,
}
