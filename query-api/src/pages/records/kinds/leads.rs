//! Leads.

use schemas::AggregateType;

use super::{
    EMAIL, Kind,
    Look::{Email, Number, Status, Tel, Text},
    States, column, field, required,
};
use crate::progress::Projection;
use crate::search;

pub(super) static LEADS: Kind = Kind {
    list: &search::LEADS,
    projection: Projection::Leads,
    aggregate: AggregateType::Lead,
    title: "Leads",
    one: "lead",
    with_article: "a lead",
    formats: &[],
    columns: &[
        column("Name", Text, Some("name")),
        column("Status", Status, Some("status")),
        column("Score", Number, None),
        column("E-mail address", Email, Some("email")),
        column("Phone", Tel, None),
        column("Source", Text, None),
    ],
    cells: "ARRAY[name, status, score::text, email, phone, source] AS cells",
    fields: &[
        required(field("name", "Name", Text, "name|full name|lead name")),
        EMAIL,
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
    states: States::Any,
};
