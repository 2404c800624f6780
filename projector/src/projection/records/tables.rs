//! The tables of the records, column by column.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use schemas::record::{Client, Company, Contact, Deal, Lead, Order};
use schemas::{AggregateType, Event};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::super::blocks::{Rows, State};
use super::super::text::{optional, storable};
use super::super::totals::Totals;
use super::{Change, Gone, Held, Left, Put, Table, deletions, leads, orders, touched};

/// Defines a table once: its own columns with their parameters and how a record fills them. The key
/// and the times are common to all. Postgres checks each statement when it is described.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident of $record:ident in $table:literal by
        $created:ident, $updated:ident, $deleted:ident
        $(with $derive:path, $($derived:literal),+)?
        listed by $column_of_state:expr, $state:literal = $state_of:expr,
        summed by $sum:literal = $amount:expr,
        counted by ($($counted:literal = $counted_value:expr),*)
        $(grouped by ($($group:literal = $group_value:expr),+))? {
        $($column:literal $parameter:literal = $value:expr),+ $(,)?
    }) => {
        $(#[$doc])*
        pub(in crate::projection) struct $name;

        impl Table for $name {
            const NAME: &'static str = $table;
            const TABLES: &'static [&'static str] = &[$table $($(, $derived)+)?];
            const AGGREGATES: &'static [AggregateType] = &[AggregateType::$record];
            const ROWS: Rows = Rows {
                table: $table,
                id: "id",
                parent: None,
                state: $column_of_state,
            };
            const BY_VALUE: &'static [&'static str] = &[$($counted),*];
            const GROUPS: &'static [&'static str] = &[$($($group),+)?];
            type Record = $record;

            fn left_by(event: &Event) -> Option<Left<'_, $record>> {
                match event {
                    Event::$created(record) | Event::$updated(record) => Some(Left::All(record)),
                    Event::$deleted(_) => Some(Left::Nothing),
                    _ => None,
                }
            }

            fn held<'a>(
                rows: &'a mut PgConnection,
                put: &'a [Put<'a, $record>],
                gone: &'a [Gone<'a>],
            ) -> BoxFuture<'a, Result<Vec<Held>, sqlx::Error>> {
                let held = sqlx::query_as!(
                    Held,
                    "SELECT org_id AS \"org_id!\", id AS \"id!\", created_at, " + $state
                        + " AS \"state!\", " + $sum + " AS \"amount!\", ARRAY["
                        + $("coalesce(" + $counted + "::text, ''), " +)* "''] AS \"values!\", ARRAY["
                        + $($("coalesce(" + $group + "::text, ''), " +)+)? "''] AS \"groups!\"
                     FROM UNNEST($1::text[], $2::text[]) AS touched (org_id, id)
                     JOIN " + $table + " USING (org_id, id)",
                    touched(put, gone).map(|key| key.0).bind_iter() as _,
                    touched(put, gone).map(|key| key.1).bind_iter() as _,
                );
                Box::pin(held.fetch_all(rows))
            }

            fn listed(record: &$record) -> (DateTime<Utc>, Cow<'_, str>) {
                let state: fn(&$record) -> Cow<'_, str> = $state_of;
                (record.created_at, state(record))
            }

            fn amount(record: &$record) -> i64 {
                let amount: fn(&$record) -> i64 = $amount;
                amount(record)
            }

            fn values(record: &$record) -> impl Iterator<Item = Option<Cow<'_, str>>> {
                const VALUES: &[fn(&$record) -> Option<Cow<'_, str>>] = &[$($counted_value),*];
                VALUES.iter().map(|value| value(record))
            }

            fn groups(record: &$record) -> impl Iterator<Item = Option<Cow<'_, str>>> {
                const GROUPS: &[fn(&$record) -> Option<Cow<'_, str>>] = &[$($($group_value),+)?];
                GROUPS.iter().map(|group| group(record))
            }

            fn upsert<'a>(
                rows: &'a mut PgConnection,
                put: &'a [Put<'a, $record>],
            ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
                let records = || put.iter().map(|put| put.record);
                let written = sqlx::query!(
                    "INSERT INTO " + $table
                        + " (org_id, id, created_at, updated_at" + $(", " + $column +)+ ")
                     SELECT * FROM UNNEST($1::text[], $2::text[], $3::timestamptz[],
                         $4::timestamptz[]" + $(", " + $parameter +)+ ")
                     ON CONFLICT (org_id, id) DO UPDATE SET
                         created_at = excluded.created_at, updated_at = excluded.updated_at"
                        + $(", " + $column + " = excluded." + $column +)+ "",
                    put.iter().map(|put| put.key.0).bind_iter() as _,
                    put.iter().map(|put| put.key.1).bind_iter() as _,
                    records().map(|record| record.created_at).bind_iter() as _,
                    put.iter().map(|put| put.updated_at).bind_iter() as _,
                    $(records().map($value).bind_iter() as _,)+
                );
                written.execute(rows).map_ok(drop).boxed()
            }

            fn delete<'a>(
                rows: &'a mut PgConnection,
                gone: &'a [Gone<'a>],
            ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
                let removed = sqlx::query!(
                    "DELETE FROM " + $table + " AS record
                     USING UNNEST($1::text[], $2::text[]) AS gone (org_id, id)
                     WHERE record.org_id = gone.org_id AND record.id = gone.id",
                    gone.iter().map(|gone| gone.key.0).bind_iter() as _,
                    gone.iter().map(|gone| gone.key.1).bind_iter() as _,
                );
                removed.execute(rows).map_ok(drop).boxed()
            }

            $(fn derive<'a>(
                rows: &'a mut PgConnection,
                change: &'a Change<'a, $record>,
                totals: &'a mut Totals,
            ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
                Box::pin($derive(rows, change, totals))
            })?
        }
    };
    // Most kinds are listed only as a whole.
    ($(#[$doc:meta])* $name:ident of $record:ident in $table:literal by
        $created:ident, $updated:ident, $deleted:ident
        $(with $derive:path, $($derived:literal),+)?
        counted by ($($counted:literal = $counted_value:expr),+)
        $(grouped by ($($group:literal = $group_value:expr),+))? {
        $($columns:tt)+
    }) => {
        table! {
            $(#[$doc])*
            $name of $record in $table by $created, $updated, $deleted
                $(with $derive, $($derived),+)?
                listed by None, "''" = |_| "".into(), summed by "0::bigint" = |_| 0,
                counted by ($($counted = $counted_value),+)
                $(grouped by ($($group = $group_value),+))? {
                $($columns)+
            }
        }
    };
}

table! {
    /// The companies of every organization.
    Companies of Company in "companies" by CompanyCreated, CompanyUpdated, CompanyDeleted
        with deletions::of_companies, "deleted_companies"
        counted by ("city" = |company| optional(company.city.as_ref()),
            "owner" = |company| optional(company.owner.as_ref())) {
        "name" "$5::text[]" = |company| storable(&company.name),
        "domain" "$6::text[]" = |company| optional(company.domain.as_ref()),
        "industry" "$7::text[]" = |company| optional(company.industry.as_ref()),
        "phone" "$8::text[]" = |company| optional(company.phone.as_ref()),
        "email" "$9::text[]" = |company| optional(company.email.as_ref()),
        "address" "$10::text[]" = |company| optional(company.address.as_ref()),
        "city" "$11::text[]" = |company| optional(company.city.as_ref()),
        "country" "$12::text[]" = |company| optional(company.country.as_ref()),
        "employees" "$13::bigint[]" = |company| company.employees,
        "annual_revenue" "$14::bigint[]" = |company| company.annual_revenue,
        "owner" "$15::text[]" = |company| optional(company.owner.as_ref()),
    }
}

table! {
    /// The deals of every organization.
    Deals of Deal in "deals" by DealCreated, DealUpdated, DealDeleted
        with deletions::of_deals, "deleted_deals"
        counted by ("stage" = |deal| optional(deal.stage.as_ref()),
            "owner" = |deal| optional(deal.owner.as_ref())) {
        "title" "$5::text[]" = |deal| storable(&deal.title),
        "stage" "$6::text[]" = |deal| optional(deal.stage.as_ref()),
        "amount" "$7::bigint[]" = |deal| deal.amount,
        "currency" "$8::text[]" = |deal| optional(deal.currency.as_ref()),
        "probability" "$9::double precision[]" = |deal| deal.probability,
        "company_id" "$10::text[]" = |deal| optional(deal.company_id.as_ref()),
        "company_name" "$11::text[]" = |deal| optional(deal.company_name.as_ref()),
        "contact_id" "$12::text[]" = |deal| optional(deal.contact_id.as_ref()),
        "contact_name" "$13::text[]" = |deal| optional(deal.contact_name.as_ref()),
        "owner" "$14::text[]" = |deal| optional(deal.owner.as_ref()),
        "expected_close_date" "$15::date[]" = |deal| deal.expected_close_date,
    }
}

table! {
    /// The contacts of every organization.
    Contacts of Contact in "contacts" by ContactCreated, ContactUpdated, ContactDeleted
        with deletions::of_contacts, "deleted_contacts"
        counted by ("city" = |contact| optional(contact.city.as_ref()),
            "owner" = |contact| optional(contact.owner.as_ref())) {
        "first_name" "$5::text[]" = |contact| optional(contact.first_name.as_ref()),
        "last_name" "$6::text[]" = |contact| optional(contact.last_name.as_ref()),
        "email" "$7::text[]" = |contact| optional(contact.email.as_ref()),
        "phone" "$8::text[]" = |contact| optional(contact.phone.as_ref()),
        "job_title" "$9::text[]" = |contact| optional(contact.job_title.as_ref()),
        "company_id" "$10::text[]" = |contact| optional(contact.company_id.as_ref()),
        "company_name" "$11::text[]" = |contact| optional(contact.company_name.as_ref()),
        "city" "$12::text[]" = |contact| optional(contact.city.as_ref()),
        "country" "$13::text[]" = |contact| optional(contact.country.as_ref()),
        "owner" "$14::text[]" = |contact| optional(contact.owner.as_ref()),
    }
}

table! {
    /// The orders of every organization, with their revenue.
    Orders of Order in "orders" by OrderCreated, OrderUpdated, OrderDeleted
        with orders::recount, "revenue_months", "orders_by_time"
        listed by Some(State::Word("status")),
            "status" = |order| orders::status_name(order.status).into(),
        summed by "amount" = |order| order.amount,
        counted by ()
        grouped by ("status" = |order| Some(orders::status_name(order.status).into()),
            "plan" = |order| optional(order.plan.as_ref())) {
        "order_number" "$5::text[]" = |order| storable(&order.order_number),
        "status" "$6::text[]" = |order| orders::status_name(order.status),
        "amount" "$7::bigint[]" = |order| order.amount,
        "plan" "$8::text[]" = |order| optional(order.plan.as_ref()),
        "client_name" "$9::text[]" = |order| optional(order.client.name.as_ref()),
        "client_email" "$10::text[]" = |order| optional(order.client.email.as_ref()),
        "product_name" "$11::text[]" = |order| optional(order.product.name.as_ref()),
    }
}

table! {
    /// The leads of every organization.
    Leads of Lead in "leads" by LeadCreated, LeadUpdated, LeadDeleted
        with leads::recount, "leads_by_time"
        listed by Some(State::Text("status")),
            "coalesce(status, '')" = |lead| optional(lead.status.as_ref()).unwrap_or_default(),
        summed by "0::bigint" = |_| 0,
        counted by ("status" = |lead| optional(lead.status.as_ref()))
        grouped by ("status" = |lead| optional(lead.status.as_ref()),
            "source" = |lead| optional(lead.source.as_ref())) {
        "name" "$5::text[]" = |lead| storable(&lead.name),
        "phone" "$6::text[]" = |lead| optional(lead.phone.as_ref()),
        "email" "$7::text[]" = |lead| optional(lead.email.as_ref()),
        "service" "$8::text[]" = |lead| optional(lead.service.as_ref()),
        "source" "$9::text[]" = |lead| optional(lead.source.as_ref()),
        "status" "$10::text[]" = |lead| optional(lead.status.as_ref()),
        "score" "$11::bigint[]" = |lead| lead.score,
    }
}

table! {
    /// The clients of every organization.
    Clients of Client in "clients" by ClientCreated, ClientUpdated, ClientDeleted
        counted by ("city" = |client| optional(client.city.as_ref()),
            "is_active" = |client| Some(client.is_active.to_string().into()))
        grouped by ("city" = |client| optional(client.city.as_ref())) {
        "name" "$5::text[]" = |client| storable(&client.name),
        "email" "$6::text[]" = |client| optional(client.email.as_ref()),
        "phone" "$7::text[]" = |client| optional(client.phone.as_ref()),
        "company" "$8::text[]" = |client| optional(client.company.as_ref()),
        "city" "$9::text[]" = |client| optional(client.city.as_ref()),
        "is_active" "$10::boolean[]" = |client| client.is_active,
    }
}
