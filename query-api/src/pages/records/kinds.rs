//! What the pages know of each kind of record.

use schemas::AggregateType;
use serde::Serialize;

use crate::progress::Projection;
use crate::search;

/// How a field is shown and asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Look {
    Text,
    Email,
    Tel,
    Number,
    /// Minor units, shown with two decimals.
    Money,
    Percent,
    Date,
    Status,
    Flag,
}

/// A field of a record.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Field {
    /// Its name in the API.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) look: Look,
    pub(super) required: bool,
    /// What other systems call it in their exports, in lower case.
    pub(super) aliases: &'static str,
}

/// A column of a list.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) label: &'static str,
    pub(super) look: Look,
    /// What `sort` calls it, where the list can be sorted by it.
    pub(super) sort: Option<&'static str>,
}

/// The states that a list can be filtered by.
#[derive(Clone, Copy, Debug)]
pub(super) enum States {
    None,
    /// These, as they stand in the table and as people read them.
    Known(&'static [(&'static str, &'static str)]),
    /// Those that there are.
    Any(&'static str),
}

/// A kind of record.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) list: &'static search::Kind,
    pub(super) projection: Projection,
    pub(super) aggregate: AggregateType,
    pub(super) title: &'static str,
    pub(super) one: &'static str,
    pub(super) with_article: &'static str,
    /// The formats of its export; none where there is no export.
    pub(super) formats: &'static [(&'static str, &'static str)],
    pub(super) columns: &'static [Column],
    /// SQL for the cells of these columns.
    pub(super) cells: &'static str,
    pub(super) fields: &'static [Field],
    /// SQL for the values of these fields: a whole statement, by organization and id.
    pub(super) record: &'static str,
    pub(super) states: States,
}

const fn column(label: &'static str, look: Look, sort: Option<&'static str>) -> Column {
    Column { label, look, sort }
}

const fn field(
    name: &'static str,
    label: &'static str,
    look: Look,
    aliases: &'static str,
) -> Field {
    Field {
        name,
        label,
        look,
        required: false,
        aliases,
    }
}

const fn required(field: Field) -> Field {
    Field {
        required: true,
        ..field
    }
}

const FORMATS: &[(&str, &str)] = &[("csv", "CSV"), ("excel", "Excel"), ("pdf", "PDF")];

const ORDER_STATES: &[(&str, &str)] = &[
    ("PAYMENT_PENDING", "Payment pending"),
    ("ACTIVE", "Active"),
    ("COMPLETED", "Completed"),
    ("CANCELLED", "Cancelled"),
];

macro_rules! record_of {
    ($table:literal: $values:literal) => {
        concat!(
            "SELECT created_at, updated_at, ARRAY[",
            $values,
            "] AS cells FROM ",
            $table,
            " WHERE org_id = $1 AND id = $2"
        )
    };
}

use Look::{Date, Email, Flag, Money, Number, Percent, Status, Tel, Text};

const OWNER: Field = field(
    "owner",
    "Owner",
    Text,
    "company owner|contact owner|deal owner|owner|owner full name|account owner",
);

pub(super) static KINDS: [&Kind; 6] = [&CONTACTS, &COMPANIES, &DEALS, &ORDERS, &LEADS, &CLIENTS];

static CONTACTS: Kind = Kind {
    list: &search::CONTACTS,
    projection: Projection::Contacts,
    aggregate: AggregateType::Contact,
    title: "Contacts",
    one: "contact",
    with_article: "a contact",
    formats: FORMATS,
    columns: &[
        column("Name", Text, Some("name")),
        column("E-mail address", Email, None),
        column("Phone", Tel, None),
        column("Company", Text, None),
        column("City", Text, None),
    ],
    cells: "ARRAY[coalesce(nullif(trim(concat_ws(' ', first_name, last_name)), ''), email), email,
                  phone, company_name, city] AS cells",
    fields: &[
        field("firstName", "First name", Text, "first name|given name"),
        field(
            "lastName",
            "Last name",
            Text,
            "last name|family name|surname",
        ),
        field(
            "email",
            "E-mail address",
            Email,
            "email|e-mail|email address",
        ),
        field(
            "phone",
            "Phone",
            Tel,
            "phone|phone number|mobile|mobile phone number|business phone",
        ),
        field("jobTitle", "Job title", Text, "job title|title"),
        field(
            "companyId",
            "Company id",
            Text,
            "company id|associated company ids|primary associated company id|account id|accountid",
        ),
        field(
            "companyName",
            "Company",
            Text,
            "company|company name|associated company|primary associated company|account name",
        ),
        field("city", "City", Text, "city|mailing city|mailingcity"),
        field(
            "country",
            "Country",
            Text,
            "country|country/region|mailing country|mailingcountry",
        ),
        OWNER,
    ],
    record: record_of!("contacts": "first_name, last_name, email, phone, job_title, company_id,
                        company_name, city, country, owner"),
    states: States::None,
};

static COMPANIES: Kind = Kind {
    list: &search::COMPANIES,
    projection: Projection::Companies,
    aggregate: AggregateType::Company,
    title: "Companies",
    one: "company",
    with_article: "a company",
    formats: &[
        ("csv", "CSV"),
        ("excel", "Excel"),
        ("pdf", "PDF"),
        ("crm", "CSV for HubSpot"),
    ],
    columns: &[
        column("Name", Text, Some("name")),
        column("Domain", Text, None),
        column("Industry", Text, None),
        column("E-mail address", Email, None),
        column("Phone", Tel, None),
    ],
    cells: "ARRAY[name, domain, industry, email, phone] AS cells",
    fields: &[
        required(field(
            "name",
            "Name",
            Text,
            "name|company name|account name|company",
        )),
        field(
            "domain",
            "Domain",
            Text,
            "domain|company domain name|website|website url",
        ),
        field("industry", "Industry", Text, "industry"),
        field("phone", "Phone", Tel, "phone|phone number"),
        field(
            "email",
            "E-mail address",
            Email,
            "email|e-mail|email address",
        ),
        field(
            "address",
            "Street address",
            Text,
            "address|street address|billing street|billingstreet",
        ),
        field("city", "City", Text, "city|billing city|billingcity"),
        field(
            "country",
            "Country",
            Text,
            "country|country/region|billing country|billingcountry",
        ),
        field(
            "employees",
            "Employees",
            Number,
            "employees|number of employees|numberofemployees",
        ),
        field(
            "annualRevenue",
            "Annual revenue",
            Number,
            "annual revenue|annualrevenue",
        ),
        OWNER,
    ],
    record: record_of!("companies": "name, domain, industry, phone, email, address, city, country,
                        employees::text, annual_revenue::text, owner"),
    states: States::None,
};

static DEALS: Kind = Kind {
    list: &search::DEALS,
    projection: Projection::Deals,
    aggregate: AggregateType::Deal,
    title: "Deals",
    one: "deal",
    with_article: "a deal",
    formats: FORMATS,
    columns: &[
        column("Title", Text, Some("name")),
        column("Stage", Status, None),
        column("Amount", Money, Some("amount")),
        column("Currency", Text, None),
        column("Company", Text, None),
        column("Expected close", Date, None),
    ],
    cells: "ARRAY[title, stage, amount::text, currency, company_name, expected_close_date::text]
            AS cells",
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
    states: States::Any("stage"),
};

static ORDERS: Kind = Kind {
    list: &search::ORDERS,
    projection: Projection::Orders,
    aggregate: AggregateType::Order,
    title: "Orders",
    one: "order",
    with_article: "an order",
    formats: &[],
    columns: &[
        column("Number", Text, None),
        column("Client", Text, Some("name")),
        column("Status", Status, None),
        column("Amount", Money, Some("amount")),
        column("Product", Text, None),
    ],
    cells: "ARRAY[order_number, coalesce(client_name, client_email), status, amount::text,
                  product_name] AS cells",
    fields: &[
        required(field(
            "orderNumber",
            "Order number",
            Text,
            "order number|order no|number|ordernumber",
        )),
        required(field("status", "Status", Status, "status|order status")),
        required(field(
            "amount",
            "Amount",
            Money,
            "amount|total|order amount|totalamount",
        )),
        field("plan", "Plan", Text, "plan"),
        field(
            "client.name",
            "Client",
            Text,
            "client|client name|customer|customer name|account name",
        ),
        field(
            "client.email",
            "Client's e-mail address",
            Email,
            "client email|customer email|email",
        ),
        field("product.name", "Product", Text, "product|product name"),
    ],
    record: record_of!("orders": "order_number, status, amount::text, plan, client_name,
                        client_email, product_name"),
    states: States::Known(ORDER_STATES),
};

static LEADS: Kind = Kind {
    list: &search::LEADS,
    projection: Projection::Leads,
    aggregate: AggregateType::Lead,
    title: "Leads",
    one: "lead",
    with_article: "a lead",
    formats: &[],
    columns: &[
        column("Name", Text, Some("name")),
        column("Status", Status, None),
        column("Score", Number, None),
        column("E-mail address", Email, None),
        column("Phone", Tel, None),
        column("Source", Text, None),
    ],
    cells: "ARRAY[name, status, score::text, email, phone, source] AS cells",
    fields: &[
        required(field("name", "Name", Text, "name|full name|lead name")),
        field(
            "email",
            "E-mail address",
            Email,
            "email|e-mail|email address",
        ),
        field(
            "phone",
            "Phone",
            Tel,
            "phone|phone number|mobile phone number|mobile",
        ),
        field("service", "Service", Text, "service|product interest"),
        field(
            "source",
            "Source",
            Text,
            "source|lead source|leadsource|original source",
        ),
        field("status", "Status", Text, "status|lead status"),
        field(
            "score",
            "Score",
            Number,
            "score|lead score|hubspot score|rating",
        ),
    ],
    record: record_of!("leads": "name, email, phone, service, source, status, score::text"),
    states: States::Any("status"),
};

static CLIENTS: Kind = Kind {
    list: &search::CLIENTS,
    projection: Projection::Clients,
    aggregate: AggregateType::Client,
    title: "Clients",
    one: "client",
    with_article: "a client",
    formats: &[],
    columns: &[
        column("Name", Text, Some("name")),
        column("E-mail address", Email, None),
        column("Phone", Tel, None),
        column("Company", Text, None),
        column("Active", Flag, None),
    ],
    cells: "ARRAY[name, email, phone, company, is_active::text] AS cells",
    fields: &[
        required(field(
            "name",
            "Name",
            Text,
            "name|full name|client name|account name",
        )),
        field(
            "email",
            "E-mail address",
            Email,
            "email|e-mail|email address",
        ),
        field("phone", "Phone", Tel, "phone|phone number"),
        field("company", "Company", Text, "company|company name"),
        field("city", "City", Text, "city|billing city|mailing city"),
        field("isActive", "Active", Flag, "active|is active|isactive"),
    ],
    record: record_of!("clients": "name, email, phone, company, city, is_active::text"),
    states: States::Known(&[("true", "Active"), ("false", "Not active")]),
};
