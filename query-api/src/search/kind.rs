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
    /// The column that a list can be filtered by.
    pub(super) state: Option<&'static str>,
    /// Whether the counters know how many there are of each state.
    pub(super) states_are_counted: bool,
}

pub(crate) static COMPANIES: Kind = Kind {
    table: "companies",
    found_by: r"(name || E'\n' || coalesce(domain, '') || E'\n' || coalesce(email, '') || E'\n'
                 || coalesce(phone, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    state: None,
    states_are_counted: false,
};

pub(crate) static DEALS: Kind = Kind {
    table: "deals",
    found_by: r"(title || E'\n' || coalesce(company_name, '') || E'\n'
                 || coalesce(contact_name, ''))",
    name: r#"(lower(left(title, 100)) COLLATE "C")"#,
    amount: Some("coalesce(amount, 0)"),
    state: Some("stage"),
    states_are_counted: false,
};

pub(crate) static CONTACTS: Kind = Kind {
    table: "contacts",
    found_by: r"(coalesce(first_name, '') || ' ' || coalesce(last_name, '') || E'\n'
                 || coalesce(email, '') || E'\n' || coalesce(phone, '') || E'\n'
                 || coalesce(company_name, ''))",
    name: r#"(lower(left(ltrim(coalesce(first_name, '') || ' ' || coalesce(last_name, '')), 100))
              COLLATE "C")"#,
    amount: None,
    state: None,
    states_are_counted: false,
};

pub(crate) static ORDERS: Kind = Kind {
    table: "orders",
    found_by: r"(order_number || E'\n' || coalesce(client_name, '') || E'\n'
                 || coalesce(client_email, '') || E'\n' || coalesce(product_name, ''))",
    name: r#"(lower(left(coalesce(client_name, ''), 100)) COLLATE "C")"#,
    amount: Some("amount"),
    state: Some("status"),
    states_are_counted: true,
};

pub(crate) static LEADS: Kind = Kind {
    table: "leads",
    found_by: r"(name || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    state: Some("status"),
    states_are_counted: false,
};

pub(crate) static CLIENTS: Kind = Kind {
    table: "clients",
    found_by: r"(name || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, '') || E'\n'
                 || coalesce(company, ''))",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    state: Some("is_active::text"),
    states_are_counted: false,
};
