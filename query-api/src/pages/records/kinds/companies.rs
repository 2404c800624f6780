//! Companies.

use schemas::AggregateType;

use super::{
    EMAIL, Kind,
    Look::{Email, Number, Tel, Text},
    OWNER, States, column, field, required,
};
use crate::progress::Projection;
use crate::search;

pub(super) static COMPANIES: Kind = Kind {
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
        column("E-mail address", Email, Some("email")),
        column("Phone", Tel, None),
        column("City", Text, Some("city")),
        column("Owner", Text, Some("owner")),
    ],
    cells: "ARRAY[name, domain, industry, email, phone, city, owner] AS cells",
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
        EMAIL,
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
