//! `GET /api/v1/records/{kind}/{id}`: a record as it was written.

use access::scope;
use axum::Json;
use axum::http::HeaderName;
use axum::http::header::ETAG;
use chrono::{DateTime, NaiveDate, Utc};
use domain::Revision;
use serde::Serialize;
use service::HttpError;

use super::percent::Percent;
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};

/// The client of an order.
#[derive(Debug, Serialize)]
struct OrderClient {
    name: Option<String>,
    email: Option<String>,
}

/// The product of an order.
#[derive(Debug, Serialize)]
struct OrderProduct {
    name: Option<String>,
}

/// Declares a kind's fields with their columns once, in the order of the response, followed by the
/// objects within it.
macro_rules! record {
    ($(#[$doc:meta])* $get:ident answers $record:ident from $table:literal in $projection:ident {
        $($field:ident: $type:ty = $column:literal),+ $(,)?
        $(; $group:ident: $within:ident {
            $($part:ident: $row:ident = $part_column:literal),+ $(,)?
        })*
    }) => {
        #[derive(Debug, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct $record {
            id: String,
            $($field: $type,)+
            $($group: $within,)*
            created_at: DateTime<Utc>,
            updated_at: DateTime<Utc>,
        }

        $(#[$doc])*
        pub(super) async fn $get(
            reading: Reading<scope::WriteRecords>,
            ResourceId(id): ResourceId,
        ) -> Result<([(HeaderName, String); 1], Json<$record>), HttpError> {
            let models = reading.models(&[Projection::$projection]).await?;
            let found = sqlx::query!(
                "SELECT id, created_at, updated_at" + $(", " + $column +)+ $($(", " + $part_column +)+)*
                " FROM " + $table + " WHERE org_id = $1 AND id = $2",
                reading.org().as_str(),
                id,
            );
            let found = found.fetch_optional(models).await?;
            let row = found.ok_or_else(|| {
                HttpError::not_found(concat!(stringify!($get), " not found"))
            })?;
            let etag = Revision::of_record(row.updated_at).etag();
            Ok(([(ETAG, etag)], Json($record {
                id: row.id,
                $($field: row.$field,)+
                $($group: $within { $($part: row.$row),+ },)*
                created_at: row.created_at,
                updated_at: row.updated_at,
            })))
        }
    };
}

record! {
    /// `GET /api/v1/records/companies/{id}`
    company answers CompanyRecord from "companies" in Companies {
        name: String = "name",
        domain: Option<String> = "domain",
        industry: Option<String> = "industry",
        phone: Option<String> = "phone",
        email: Option<String> = "email",
        address: Option<String> = "address",
        city: Option<String> = "city",
        country: Option<String> = "country",
        employees: Option<i64> = "employees",
        annual_revenue: Option<i64> = "annual_revenue",
        owner: Option<String> = "owner",
    }
}

record! {
    /// `GET /api/v1/records/deals/{id}`
    deal answers DealRecord from "deals" in Deals {
        title: String = "title",
        stage: Option<String> = "stage",
        amount: Option<i64> = "amount",
        currency: Option<String> = "currency",
        probability: Option<Percent> = "probability AS \"probability: Percent\"",
        company_id: Option<String> = "company_id",
        company_name: Option<String> = "company_name",
        contact_id: Option<String> = "contact_id",
        contact_name: Option<String> = "contact_name",
        owner: Option<String> = "owner",
        expected_close_date: Option<NaiveDate> = "expected_close_date",
    }
}

record! {
    /// `GET /api/v1/records/contacts/{id}`
    contact answers ContactRecord from "contacts" in Contacts {
        first_name: Option<String> = "first_name",
        last_name: Option<String> = "last_name",
        email: Option<String> = "email",
        phone: Option<String> = "phone",
        job_title: Option<String> = "job_title",
        company_id: Option<String> = "company_id",
        company_name: Option<String> = "company_name",
        city: Option<String> = "city",
        country: Option<String> = "country",
        owner: Option<String> = "owner",
    }
}

record! {
    /// `GET /api/v1/records/orders/{id}`
    order answers OrderRecord from "orders" in Orders {
        order_number: String = "order_number",
        status: String = "status",
        amount: i64 = "amount",
        plan: Option<String> = "plan";
        client: OrderClient {
            name: client_name = "client_name",
            email: client_email = "client_email",
        };
        product: OrderProduct {
            name: product_name = "product_name",
        }
    }
}

record! {
    /// `GET /api/v1/records/leads/{id}`
    lead answers LeadRecord from "leads" in Leads {
        name: String = "name",
        phone: Option<String> = "phone",
        email: Option<String> = "email",
        service: Option<String> = "service",
        source: Option<String> = "source",
        status: Option<String> = "status",
        score: i64 = "score",
    }
}

record! {
    /// `GET /api/v1/records/clients/{id}`
    client answers ClientRecord from "clients" in Clients {
        name: String = "name",
        email: Option<String> = "email",
        phone: Option<String> = "phone",
        company: Option<String> = "company",
        city: Option<String> = "city",
        is_active: bool = "is_active",
    }
}
