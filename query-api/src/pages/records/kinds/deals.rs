//! Deals.

use schemas::AggregateType;

use super::{
    FORMATS, Kind,
    Look::{Date, Money, Percent, Status, Text},
    OWNER, States, column, field, required,
};
use crate::progress::Projection;
use crate::search;

pub(super) static DEALS: Kind = Kind {
    list: &search::DEALS,
    projection: Projection::Deals,
    aggregate: AggregateType::Deal,
    title: "Deals",
    one: "deal",
    with_article: "a deal",
    formats: FORMATS,
    columns: &[
        column("Title", Text, Some("name")),
        column("Stage", Status, Some("stage")),
        column("Amount", Money, Some("amount")),
        column("Currency", Text, None),
        column("Company", Text, None),
        column("Expected close", Date, None),
        column("Owner", Text, Some("owner")),
    ],
    cells: "ARRAY[title, stage, amount::text, currency, company_name, expected_close_date::text,
                  owner] AS cells",
    fields: &[
        required(field(
            "title",
            "Title",
            Text,
            "title|deal name|dealname|opportunity name|name",
        )),
        field(
            "stage",
            "Stage",
            Text,
            "stage|deal stage|dealstage|stagename",
        ),
        field("amount", "Amount", Money, "amount"),
        field(
            "currency",
            "Currency",
            Text,
            "currency|deal currency code|currency code|currencyisocode",
        ),
        field(
            "probability",
            "Probability in percent",
            Percent,
            "probability|deal probability|probability (%)",
        ),
        field(
            "companyId",
            "Company id",
            Text,
            "company id|associated company ids|account id|accountid",
        ),
        field(
            "companyName",
            "Company",
            Text,
            "company|company name|associated company|account name",
        ),
        field(
            "contactId",
            "Contact id",
            Text,
            "contact id|associated contact ids|contactid",
        ),
        field(
            "contactName",
            "Contact",
            Text,
            "contact|contact name|associated contact",
        ),
        OWNER,
        field(
            "expectedCloseDate",
            "Expected close",
            Date,
            "close date|closedate|expected close date",
        ),
    ],
    record: record_of!("deals": "title, stage, amount::text, currency, probability::text,
                        company_id, company_name, contact_id, contact_name, owner,
                        expected_close_date::text"),
    states: States::Any,
};
