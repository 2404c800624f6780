//! The fields of each kind of record.

use chrono::{DateTime, NaiveDate, Utc};
use schemas::RecordId;
use schemas::record::{
    Client, Company, Contact, Deal, Lead, Order, OrderClient, OrderProduct, OrderStatus,
};

use super::value::{
    day, flag_or_true, order_status, percent, required_text, required_whole, text, whole,
    whole_or_zero,
};
use super::values::Values;
use crate::FieldError;

/// Declares a kind's own fields once: the field, its type, its reader and its external name; then
/// the nested objects. `id` and `createdAt` are common to all kinds.
macro_rules! fields {
    ($(#[$doc:meta])* $name:ident makes $record:ident $(, checked by $check:ident)? {
        $($field:ident: $type:ty = $reader:ident $label:literal),+ $(,)?
        $(; $group:ident: $within:ident {
            $($part:ident = $part_reader:ident $part_label:literal),+ $(,)?
        })*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub(super) struct $name { $($field: $type,)+ $($group: $within,)* }

        impl $name {
            /// The fields' external names, in the order of the record.
            pub(super) const NAMES: &'static [&'static str] =
                &[$($label,)+ $($($part_label,)+)*];

            /// The names of the nested objects.
            pub(super) const GROUPS: &'static [&'static str] = &[$(stringify!($group)),*];

            /// Reads and checks the fields.
            pub(super) fn read(values: &mut Values<'_>) -> Result<Self, FieldError> {
                let fields = Self {
                    $($field: $reader($label, values.take($label))?,)+
                    $($group: $within {
                        $($part: $part_reader($part_label, values.take($part_label))?,)+
                    },)*
                };
                $(fields.$check()?;)?
                Ok(fields)
            }

            /// The whole record.
            pub(super) fn complete(self, id: RecordId, created_at: DateTime<Utc>) -> $record {
                $record { id, $($field: self.$field,)+ $($group: self.$group,)* created_at }
            }
        }
    };
}

fields! {
    /// A company's own fields.
    CompanyFields makes Company {
        name: String = required_text "name",
        domain: Option<String> = text "domain",
        industry: Option<String> = text "industry",
        phone: Option<String> = text "phone",
        email: Option<String> = text "email",
        address: Option<String> = text "address",
        city: Option<String> = text "city",
        country: Option<String> = text "country",
        employees: Option<i64> = whole "employees",
        annual_revenue: Option<i64> = whole "annualRevenue",
        owner: Option<String> = text "owner",
    }
}

fields! {
    /// A deal's own fields.
    DealFields makes Deal {
        title: String = required_text "title",
        stage: Option<String> = text "stage",
        amount: Option<i64> = whole "amount",
        currency: Option<String> = text "currency",
        probability: Option<f64> = percent "probability",
        company_id: Option<String> = text "companyId",
        company_name: Option<String> = text "companyName",
        contact_id: Option<String> = text "contactId",
        contact_name: Option<String> = text "contactName",
        owner: Option<String> = text "owner",
        expected_close_date: Option<NaiveDate> = day "expectedCloseDate",
    }
}

fields! {
    /// A contact's own fields.
    ContactFields makes Contact, checked by is_named {
        first_name: Option<String> = text "firstName",
        last_name: Option<String> = text "lastName",
        email: Option<String> = text "email",
        phone: Option<String> = text "phone",
        job_title: Option<String> = text "jobTitle",
        company_id: Option<String> = text "companyId",
        company_name: Option<String> = text "companyName",
        city: Option<String> = text "city",
        country: Option<String> = text "country",
        owner: Option<String> = text "owner",
    }
}

impl ContactFields {
    /// Refuses a contact that nobody could find again.
    fn is_named(&self) -> Result<(), FieldError> {
        let named = [&self.first_name, &self.last_name, &self.email]
            .into_iter()
            .flatten()
            .any(|text| !text.trim().is_empty());
        if named {
            Ok(())
        } else {
            Err(FieldError::new(
                "email",
                "one of firstName, lastName and email is required",
            ))
        }
    }
}

fields! {
    /// An order's own fields.
    OrderFields makes Order {
        order_number: String = required_text "orderNumber",
        status: OrderStatus = order_status "status",
        amount: i64 = required_whole "amount",
        plan: Option<String> = text "plan";
        client: OrderClient {
            name = text "client.name",
            email = text "client.email",
        };
        product: OrderProduct {
            name = text "product.name",
        }
    }
}

fields! {
    /// A lead's own fields.
    LeadFields makes Lead {
        name: String = required_text "name",
        phone: Option<String> = text "phone",
        email: Option<String> = text "email",
        service: Option<String> = text "service",
        source: Option<String> = text "source",
        status: Option<String> = text "status",
        score: i64 = whole_or_zero "score",
    }
}

fields! {
    /// A client's own fields.
    ClientFields makes Client {
        name: String = required_text "name",
        email: Option<String> = text "email",
        phone: Option<String> = text "phone",
        company: Option<String> = text "company",
        city: Option<String> = text "city",
        is_active: bool = flag_or_true "isActive",
    }
}
