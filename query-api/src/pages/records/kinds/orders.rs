//! Orders.

use schemas::AggregateType;

use super::{
    Kind,
    Look::{Email, Money, Status, Text},
    States, column, field, required,
};
use crate::progress::Projection;
use crate::search;

const ORDER_STATES: &[(&str, &str)] = &[
    ("PAYMENT_PENDING", "Payment pending"),
    ("ACTIVE", "Active"),
    ("COMPLETED", "Completed"),
    ("CANCELLED", "Cancelled"),
];

pub(super) static ORDERS: Kind = Kind {
    list: &search::ORDERS,
    projection: Projection::Orders,
    aggregate: AggregateType::Order,
    title: "Orders",
    one: "order",
    with_article: "an order",
    formats: &[],
    columns: &[
        column("Number", Text, Some("number")),
        column("Client", Text, Some("name")),
        column("Status", Status, Some("status")),
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
