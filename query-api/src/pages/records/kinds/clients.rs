//! Clients.

use schemas::AggregateType;

use super::{
    EMAIL, Kind,
    Look::{Email, Flag, Tel, Text},
    States, column, field, required,
};
use crate::progress::Projection;
use crate::search;

pub(super) static CLIENTS: Kind = Kind {
    list: &search::CLIENTS,
    projection: Projection::Clients,
    aggregate: AggregateType::Client,
    title: "Clients",
    one: "client",
    with_article: "a client",
    formats: &[],
    columns: &[
        column("Name", Text, Some("name")),
        column("E-mail address", Email, Some("email")),
        column("Phone", Tel, None),
        column("Company", Text, None),
        column("City", Text, Some("city")),
        column("Active", Flag, Some("isActive")),
    ],
    cells: "ARRAY[name, email, phone, company, city, is_active::text] AS cells",
    fields: &[
        required(field(
            "name",
            "Name",
            Text,
            "name|full name|client name|account name",
        )),
        EMAIL,
        field("phone", "Phone", Tel, "phone|phone number"),
        field("company", "Company", Text, "company|company name"),
        field("city", "City", Text, "city|billing city|mailing city"),
        field("isActive", "Active", Flag, "active|is active|isactive"),
    ],
    record: record_of!("clients": "name, email, phone, company, city, is_active::text"),
    states: States::Known(&[("true", "Active"), ("false", "Not active")]),
};
