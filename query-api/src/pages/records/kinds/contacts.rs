//! Contacts.

use schemas::AggregateType;

use super::{
    EMAIL, FORMATS, Kind,
    Look::{Email, Tel, Text},
    OWNER, States, column, field,
};
use crate::progress::Projection;
use crate::search;

pub(super) static CONTACTS: Kind = Kind {
    list: &search::CONTACTS,
    projection: Projection::Contacts,
    aggregate: AggregateType::Contact,
    title: "Contacts",
    one: "contact",
    with_article: "a contact",
    formats: FORMATS,
    columns: &[
        column("Name", Text, Some("name")),
        column("E-mail address", Email, Some("email")),
        column("Phone", Tel, None),
        column("Company", Text, None),
        column("City", Text, Some("city")),
        column("Owner", Text, Some("owner")),
    ],
    cells: "ARRAY[coalesce(nullif(trim(concat_ws(' ', first_name, last_name)), ''), email), email,
                  phone, company_name, city, owner] AS cells",
    fields: &[
        field("firstName", "First name", Text, "first name|given name"),
        field(
            "lastName",
            "Last name",
            Text,
            "last name|family name|surname",
        ),
        EMAIL,
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
