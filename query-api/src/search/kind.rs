//! What each kind of record is searched and sorted by.

/// A kind of record as lists know it. All texts are SQL, over the columns of its table; those of
/// `found_by`, `name` and `amount` are the expressions that migration 0012 indexes, to the letter.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The table, which is what the kind is called too.
    pub(crate) table: &'static str,
    /// What `q` is looked for in.
    pub(super) found_by: &'static str,
    /// What `sort=name` orders by.
    pub(super) name: &'static str,
    /// What `sort=amount` orders by, where there is an amount.
    pub(super) amount: Option<&'static str>,
    /// What a list can be filtered by.
    pub(super) states: States,
}

/// The states of a kind, by the column that holds them.
#[derive(Clone, Copy, Debug)]
pub(super) enum States {
    None,
    /// The counters know how many there are of each.
    Counted(&'static str),
    Uncounted(&'static str),
}

impl States {
    pub(super) fn column(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Counted(column) | Self::Uncounted(column) => Some(column),
        }
    }
}

pub(crate) static COMPANIES: Kind = Kind {
    table: "companies",
    found_by: r"(name || E'\n' || coalesce(domain, '') || E'\n' || coalesce(email, '') || E'\n'
                 || coalesce(phone, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    states: States::None,
};

pub(crate) static DEALS: Kind = Kind {
    table: "deals",
    found_by: r"(title || E'\n' || coalesce(company_name, '') || E'\n'
                 || coalesce(contact_name, ''))",
    name: r#"(lower(left(title, 100)) COLLATE "C")"#,
    amount: Some("coalesce(amount, 0)"),
    states: States::Uncounted("stage"),
};

pub(crate) static CONTACTS: Kind = Kind {
    table: "contacts",
    found_by: r"(coalesce(first_name, '') || ' ' || coalesce(last_name, '') || E'\n'
                 || coalesce(email, '') || E'\n' || coalesce(phone, '') || E'\n'
                 || coalesce(company_name, ''))",
    name: r#"(lower(left(ltrim(coalesce(first_name, '') || ' ' || coalesce(last_name, '')), 100))
              COLLATE "C")"#,
    amount: None,
    states: States::None,
};

pub(crate) static ORDERS: Kind = Kind {
    table: "orders",
    found_by: r"(order_number || E'\n' || coalesce(client_name, '') || E'\n'
                 || coalesce(client_email, '') || E'\n' || coalesce(product_name, ''))",
    name: r#"(lower(left(coalesce(client_name, ''), 100)) COLLATE "C")"#,
    amount: Some("amount"),
    states: States::Counted("status"),
};

pub(crate) static LEADS: Kind = Kind {
    table: "leads",
    found_by: r"(name || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    states: States::Uncounted("status"),
};

pub(crate) static CLIENTS: Kind = Kind {
    table: "clients",
    found_by: r"(name || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, '') || E'\n'
                 || coalesce(company, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    states: States::Uncounted("is_active::text"),
};
